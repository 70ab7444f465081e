"""The code interpreter of a sandbox: an HTTP server and the kernels that run its cells."""
