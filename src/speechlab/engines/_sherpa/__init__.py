"""Models of sherpa-onnx, recognizers and voices, from a folder, in processes of their own."""
