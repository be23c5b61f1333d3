"""What tests share: servers, services and engines made by hand, clients that send what they are told, a browser."""
