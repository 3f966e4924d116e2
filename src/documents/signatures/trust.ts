import { type KeyObject, createPublicKey } from 'node:crypto'
import { sha256Hex } from '../../base/digest.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { briefReason, readNamedFile } from '../../base/files.ts'

/** A public key that the operator trusts. */
export interface TrustedKey {
  readonly key: KeyObject
  /** SHA-256 of its SubjectPublicKeyInfo, hex. */
  readonly fingerprint: string
}

/** What the operator trusts. */
export interface Trust {
  readonly keys: readonly TrustedKey[]
  /** The trusted roots of Sigstore, as parsed. */
  readonly roots: readonly unknown[]
  /** The files' content. */
  readonly texts: readonly string[]
  /** Another one for other content. */
  readonly digest: string
}

const PUBLIC_KEY = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g
const LEAST_RSA_BITS = 2048

/** What `catalog.trustRoot` names instead of a file: what the last bundle with a trust root brought. */
export const OF_BUNDLES = 'bundle'

/**
 * Reads what `catalog.trustRoot` names: files of public keys in PEM, and trusted roots of Sigstore. `carried`: the texts of such
 * files that bundles brought. Throws `config`.
 */
export function readTrust(names: readonly string[], carried: readonly string[]): Trust {
  const files = names.flatMap((name) =>
    name === OF_BUNDLES ? carried.map((text) => ({ name, text })) : [{ name, text: readText(name) }],
  )
  const texts = [...new Set(files.map(({ text }) => text))]
  const parts = files.map(({ name, text }) => partOf(name, text))
  return {
    texts,
    keys: parts.flatMap(({ keys }) => keys),
    roots: parts.flatMap(({ root }) => (root === null ? [] : [root])),
    digest: sha256Hex(JSON.stringify(texts)),
  }
}

function readText(file: string): string {
  try {
    return readNamedFile(file).toString('utf8')
  } catch (error) {
    const why = briefReason(error, 'not a file name')
    throw refusal(file, `cannot be read (${why})`, error)
  }
}

function partOf(file: string, text: string): { keys: readonly TrustedKey[]; root: unknown } {
  try {
    if (text.trimStart().startsWith('{')) return { keys: [], root: JSON.parse(text) }
    const keys = (text.match(PUBLIC_KEY) ?? []).map(keyOf)
    if (keys.length === 0) throw new Error('it has no public key')
    return { keys, root: null }
  } catch (error) {
    throw refusal(file, `cannot be used: ${messageOf(error)}`, error)
  }
}

function keyOf(pem: string): TrustedKey {
  const key = createPublicKey(pem)
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  const isWeak = type === 'rsa' && (details?.modulusLength ?? 0) < LEAST_RSA_BITS
  if (isWeak) throw new Error(`an RSA key has less than ${LEAST_RSA_BITS} bits`)
  if (type !== 'ec' && type !== 'ed25519' && type !== 'rsa')
    throw new Error(`a key is of the type ${type ?? 'unknown'}, not EC, Ed25519 or RSA`)
  return { key, fingerprint: sha256Hex(key.export({ type: 'spki', format: 'der' })) }
}

function refusal(file: string, what: string, cause: unknown): MirrorError {
  return new MirrorError('config', `catalog.trustRoot: ${file} ${what}`, { cause })
}
