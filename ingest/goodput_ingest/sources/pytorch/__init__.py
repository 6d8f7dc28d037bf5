"""PyTorch: Flight Recorder dumps and Kineto traces."""
