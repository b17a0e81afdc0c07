"""The folder of a merged model: where tensors lie, all other files, whole or not at all."""
