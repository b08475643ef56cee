# SPDX-License-Identifier: Apache-2.0
"""A TLS 1.3 client that sends records of any type after its handshake, which no library does."""

import ctypes
import hashlib
import hmac
import socket
import ssl
import struct
import tempfile

HANDSHAKE, DATA = 22, 23
ENDLESS = b"\x18\xff\xff\xff"  # the beginning of a KeyUpdate of 16 MiB

_crypto = ctypes.CDLL(ssl._ssl.__file__)  # its libcrypto
for _name in ("EVP_CIPHER_CTX_new", "EVP_aes_128_gcm"):
    getattr(_crypto, _name).restype = ctypes.c_void_p


def _seal(key, nonce, more, text):
    context = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    out, size, tag = ctypes.create_string_buffer(len(text) + 16), ctypes.c_int(), ctypes.create_string_buffer(16)
    cipher = ctypes.c_void_p(_crypto.EVP_aes_128_gcm())
    done = [_crypto.EVP_EncryptInit_ex(context, cipher, None, key, nonce),
            _crypto.EVP_EncryptUpdate(context, None, ctypes.byref(size), more, len(more)),
            _crypto.EVP_EncryptUpdate(context, out, ctypes.byref(size), text, len(text))]
    sealed = out.raw[:size.value]
    done += [_crypto.EVP_EncryptFinal_ex(context, out, ctypes.byref(size)),
             _crypto.EVP_CIPHER_CTX_ctrl(context, 0x10, 16, tag)]  # EVP_CTRL_AEAD_GET_TAG
    _crypto.EVP_CIPHER_CTX_free(context)
    assert done == [1] * len(done)
    return sealed + tag.raw


def _derive(secret, label, size):
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + b"\0\1"
    return hmac.new(secret, info, hashlib.sha256).digest()[:size]


class Client:
    """A connection after its handshake."""

    def __init__(self, port, source="127.0.0.1", timeout=30):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.sock = socket.create_connection(("127.0.0.1", port), timeout, (source, 0))
        self._in, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        with tempfile.NamedTemporaryFile() as keys:
            context.keylog_filename = keys.name
            self._tls = context.wrap_bio(self._in, out)
            done = False
            while not done:
                try:
                    self._tls.do_handshake()
                    done = True
                except ssl.SSLWantReadError:
                    pass
                self.sock.sendall(out.read())
                if not done:
                    self._receive()
            secret, = [line.split()[2] for line in keys.read().decode().splitlines()
                       if line.startswith("CLIENT_TRAFFIC_SECRET_0")]
        assert self._tls.cipher()[0] == "TLS_AES_128_GCM_SHA256"
        secret = bytes.fromhex(secret)
        self._key, self._iv, self._sent = _derive(secret, b"key", 16), _derive(secret, b"iv", 12), 0

    def _receive(self):
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionResetError("the peer closed the connection")
        self._in.write(data)

    def send(self, kind, data):
        """One record of this type."""
        text = data + bytes([kind])
        head = b"\x17\3\3" + struct.pack(">H", len(text) + 16)
        nonce = (int.from_bytes(self._iv, "big") ^ self._sent).to_bytes(12, "big")
        self._sent += 1
        self.sock.sendall(head + _seal(self._key, nonce, head, text))

    def receive(self):
        """The data of the next record."""
        while True:
            try:
                return self._tls.read(65536)
            except ssl.SSLWantReadError:
                self._receive()

    def close(self):
        """Without an alert."""
        self.sock.close()
