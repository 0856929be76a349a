"""Where answers come from: an OpenAI-compatible endpoint, or vLLM in this process."""
