"""Tables of GPU readings that nvidia-smi and dcgmi print."""
