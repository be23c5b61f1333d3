"""The probe: requests to a deployment, and its replies."""
