"""Fine-tunes: a base model's heads, calibrators and LoRA weights, fitted on a dataset's rows."""
