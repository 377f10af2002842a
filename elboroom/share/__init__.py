"""What leaves the workbench: graphs for services without torch, codes for a projector, runs by their address."""
