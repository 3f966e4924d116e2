import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemCode } from '../errors.ts'
import { type CheckContext, type Setting, type Parsed, textSetting } from './kinds.ts'

/** The 32 bytes of an Ed25519 public key in base64, behind the name of the algorithm. */
const INLINE_KEY = /^ed25519:([A-Za-z\d+/]{43}=)$/

function readPublicKey(value: string, { cwd }: CheckContext): Parsed<string> {
  const given = value.trim()
  if (INLINE_KEY.test(given)) return { value: given }
  if (given.startsWith('ed25519:'))
    return { fault: 'is no public key: "ed25519:" and 32 bytes in base64 (44 characters)' }
  const file = resolve(cwd, given)
  try {
    const pem = readFileSync(file, 'latin1')
    if (/-----BEGIN ([A-Z]+ )*PRIVATE KEY-----/.test(pem))
      return { fault: 'is a private key: give the public half, and keep this one above the gap' }
    return pem.includes('-----BEGIN PUBLIC KEY-----')
      ? { value: file }
      : { fault: 'holds no PEM public key (no "BEGIN PUBLIC KEY" line)' }
  } catch (error) {
    return { fault: `cannot be read (${systemCode(error) ?? 'not a file name'})` }
  }
}

/** A public key that bundles may be signed with: a PEM file, made absolute, or `ed25519:` and base64. */
export function publicKeySetting(): Setting<string> {
  const allowed = 'files with a PEM public key, or ed25519:BASE64'
  return textSetting(allowed, '/etc/patchmirror/bundle.pub.pem', readPublicKey)
}

/** The id of a bundle key, as `patchmirror keygen` and `inspect` print it. */
export function keyId(): Setting<string> {
  return textSetting('key ids of 16 hex digits', '9f86d081884c7d65', (value) =>
    /^[\da-f]{16}$/i.test(value.trim())
      ? { value: value.trim().toLowerCase() }
      : { fault: 'is not a key id' },
  )
}
