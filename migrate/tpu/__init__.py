"""What the TPU compiler makes of a converted model, without a TPU."""
