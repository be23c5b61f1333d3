"""The probe: requests sent to a deployment, and what came back."""
