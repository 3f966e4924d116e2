import { type KeyObject, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { PRIVATE_FILE, readNamedFile } from '../../../base/files.ts'
import { sha256Hex } from '../../../base/digest.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError, messageOf, systemCode, whyUnreadable } from '../../../base/errors.ts'

/** The public half of a key that signs bundles. */
export interface PublicKey {
  /** The first 16 hex digits of SHA-256 over the key's SPKI DER. */
  readonly id: string
  /** `ed25519:` and its 32 bytes in base64: one line for `bundle.trustedKeys`. */
  readonly line: string
  readonly verifies: (bytes: Uint8Array, signature: Uint8Array) => boolean
}

/** A key that signs. The private half is kept in a closure, so that no log or dump shows it. */
export interface SigningKey extends PublicKey {
  /** 64 bytes, by Ed25519 (RFC 8032). */
  readonly sign: (bytes: Uint8Array) => Buffer
}

/** Prefix of an Ed25519 public key in SPKI DER, before its 32 bytes (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')

/** Reads a private signing key from a PEM file (PKCS #8). Throws `config`; the message does not contain key material. */
export function readSigningKey(path: string): SigningKey {
  const pem = readKeyFile(path)
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (error) {
    // OpenSSL's message is not helpful; report our own.
    const why = pem.includes('ENCRYPTED')
      ? 'is encrypted: give it without a passphrase, in a file that only this user may read'
      : 'is not a PEM private key (PKCS #8)'
    throw new MirrorError('config', `the bundle key ${path} ${why}`, { cause: error })
  }
  const half = publicKeyOf(createPublicKey(key), path)
  return { ...half, sign: (bytes) => sign(null, bytes, key) }
}

/** Reads the keys of `bundle.signingKeys`. One that two files have signs once. Throws `config`. */
export function readSigningKeys(paths: readonly string[]): SigningKey[] {
  return [...new Map(paths.map(readSigningKey).map((key) => [key.id, key])).values()]
}

/** Reads a public key as `bundle.trustedKeys` gives it: a PEM file, or `ed25519:BASE64`. Throws `config`. */
export function readPublicKey(given: string): PublicKey {
  if (given.startsWith('ed25519:')) {
    const raw = Buffer.from(given.slice('ed25519:'.length), 'base64')
    if (raw.length !== 32) throw new MirrorError('config', `${given} is not a bundle key: it must have 32 bytes`)
    const der = Buffer.concat([SPKI, raw])
    return publicKeyOf(createPublicKey({ key: der, format: 'der', type: 'spki' }), given)
  }
  const pem = readKeyFile(given)
  if (pem.includes('PRIVATE KEY'))
    throw new MirrorError('config', `${given} is a private key: trust the public half instead`)
  try {
    return publicKeyOf(createPublicKey(pem), given)
  } catch (error) {
    if (error instanceof MirrorError) throw error
    throw new MirrorError('config', `${given} is not a PEM public key`, { cause: error })
  }
}

function readKeyFile(path: string): string {
  try {
    return readNamedFile(path).toString('latin1')
  } catch (error) {
    throw new MirrorError('config', `the bundle key ${path} cannot be read: ${whyUnreadable(error)}`)
  }
}

function publicKeyOf(key: KeyObject, where: string): PublicKey {
  if (key.asymmetricKeyType !== 'ed25519')
    throw new MirrorError(
      'config',
      `${where} is a key of type ${key.asymmetricKeyType ?? 'unknown'}; bundles are signed with Ed25519 ` +
        '("patchmirror bundle keygen" creates one)',
    )
  const der = key.export({ type: 'spki', format: 'der' })
  return {
    id: sha256Hex(der).slice(0, 16),
    line: `ed25519:${der.subarray(SPKI.length).toString('base64')}`,
    verifies: (bytes, signature) => signature.length === 64 && verify(null, bytes, key, signature),
  }
}

/**
 * Creates a key pair: `path` gets the private half (PEM, PKCS #8, mode 0600), `path`.pub the public one (PEM, SPKI).
 * Existing files are not changed. Throws `usage`, and then leaves no file.
 */
export function createKeyFiles(path: string): PublicKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const open = `${path}.pub`
  writeNew(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), PRIVATE_FILE)
  try {
    writeNew(open, publicKey.export({ type: 'spki', format: 'pem' }), 0o644)
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  }
  return publicKeyOf(publicKey, open)
}

function writeNew(path: string, text: string | Buffer, mode: number): void {
  try {
    const file = openSync(path, 'wx', mode)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    const taken = systemCode(error) === 'EEXIST'
    const why = taken ? 'it exists already, and is not overwritten' : messageOf(error)
    throw new MirrorError('usage', `${path}: ${why}. No key was created.`, { cause: error })
  }
}

/** Returns the keys trusted by the settings. Throws `config` for an unreadable key. */
export function trustOf({ bundle }: Pick<Config, 'bundle'>, more: Pick<KeyTrust, 'allowUnsigned' | 'now'>): KeyTrust {
  const revoked = new Set<string>(bundle.revokedKeys)
  return { keys: bundle.trustedKeys.map(readPublicKey), revoked, ...more }
}

/** Returns whose generations of a fleet are accepted: of the trusted keys, and of the own signing keys. Throws `config`. */
export function fleetTrust(
  config: Pick<Config, 'bundle'>,
  now: () => number,
): KeyTrust & { readonly own: readonly SigningKey[] } {
  const own = readSigningKeys(config.bundle.signingKeys)
  const trusted = trustOf(config, { allowUnsigned: false, now })
  return { ...trusted, keys: [...trusted.keys, ...own], own }
}

/** Decides whose bundles are accepted. */
export interface KeyTrust {
  readonly keys: readonly PublicKey[]
  /** Ids of keys that are never accepted. */
  readonly revoked: ReadonlySet<string>
  readonly allowUnsigned: boolean
  /** Unix milliseconds; null: an expired bundle is opened too. */
  readonly now: (() => number) | null
}
