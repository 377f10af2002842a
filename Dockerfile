# elboroom with the CPU build of torch: docker build -t elboroom . && docker run --rm -v "$PWD:/data" elboroom methods
# No test builds this image; tests/test_package.py reads it.
FROM python:3.11-slim

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY elboroom ./elboroom
RUN pip install --no-cache-dir -c constraints.txt --extra-index-url "$TORCH_INDEX" torch \
    && pip install --no-cache-dir -c constraints.txt --extra-index-url "$TORCH_INDEX" '.[explore,hub,onnx,datasets,parquet]' \
    && useradd --create-home elbo \
    && mkdir /data \
    && chown elbo /data

ENV OMP_NUM_THREADS=2 ELBOROOM_CACHE=/data/.elboroom
USER elbo
WORKDIR /data
VOLUME /data
ENTRYPOINT ["elbo"]
CMD ["--help"]
