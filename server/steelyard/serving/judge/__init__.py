"""Judges: language models in GGUF files that answer decisions, each run by llama.cpp in a process of its own."""
