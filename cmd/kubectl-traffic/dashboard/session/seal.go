// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// keyBytes are those of AES-256.
const keyBytes = 32

// aead is AES-256-GCM with a random nonce in front of what is sealed. Each purpose has a key
// of its own, so that what was sealed for one never opens for another.
func aead(key, purpose string) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, []byte(key), nil, "serin dashboard "+purpose, keyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts with the first key.
func seal(keys []string, purpose string, plain []byte) (string, error) {
	box, err := aead(keys[0], purpose)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(box.Seal(nil, nil, plain, nil)), nil //nolint:gosec // Seal makes a random nonce of its own
}

// ErrSealed is that of a session of another server or key, or that was changed.
var ErrSealed = errors.New("sealed with none of the keys, or changed")

// unseal decrypts what one of the keys has sealed for the same purpose.
func unseal(keys []string, purpose, sealed string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, ErrSealed
	}
	for _, key := range keys {
		box, err := aead(key, purpose)
		if err != nil {
			return nil, err
		}
		if plain, err := box.Open(nil, nil, raw, nil); err == nil {
			return plain, nil
		}
	}
	return nil, ErrSealed
}
