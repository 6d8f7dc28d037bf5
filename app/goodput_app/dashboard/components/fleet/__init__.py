"""Parts of the Overview and of the pages of nodes, GPUs, their health and network."""
