"""`python -m elboroom` is the command `elbo`."""

from elboroom.cli import main

if __name__ == "__main__":
    main()
