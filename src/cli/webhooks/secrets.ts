import type { Config } from '../../config/schema.ts'
import { plainSecret, privateKeySeed, publicKeyBytes, webhookSecretFault } from '../../config/kinds/keys.ts'
import { secretFilePath } from '../../config/kinds/webhooks.ts'
import { MirrorError, whyUnreadable } from '../../base/errors.ts'
import { type KeptSecret, parseSecretFile, readSecretText } from '../../webhooks/receive/secret-file.ts'
import { readNamedFile } from '../../base/files.ts'

/** A secret by the name that inbox and log give it, and when it counts (unix milliseconds; null: always). */
export type StoredSecret = Pick<KeptSecret, 'label' | 'secret' | 'notBefore' | 'notAfter'>

const ALWAYS = { subscription: null, notBefore: null, notAfter: null }

/** Returns the content of the secret file, also expired secrets; empty when there is none. Throws `config`. */
export function readKeptSecrets(config: Config): KeptSecret[] {
  const path = secretFilePath(config)
  const text = readSecretText(path)
  return text === null ? [] : parseSecretFile(text, path)
}

/** Returns every secret of this mirror, those of the settings first. Throws `config`. `kept`: the content of the file, read before. */
export function readStoredSecrets(config: Config, kept = readKeptSecrets(config)): KeptSecret[] {
  const fixed = config.webhooks.secrets.map((secret, at) => ({
    ...ALWAYS,
    label: `settings-${at + 1}`,
    secret,
  }))
  return [...fixed, ...kept]
}

/**
 * Secrets and public keys from a file with one a line, named by their lines; with `forSigning` private keys (`whsk_…`) too,
 * but no public ones. Throws `usage`, and quotes none.
 */
export function readSecretLines(path: string, forSigning = false): StoredSecret[] {
  let text: string
  try {
    text = readNamedFile(path).toString('utf8')
  } catch (error) {
    const message = `--secret-file ${path} cannot be read: ${whyUnreadable(error)}`
    throw new MirrorError('usage', message, { cause: error })
  }
  const faultOf = forSigning ? signingFault : webhookSecretFault
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line, at) => ({ ...ALWAYS, label: `line ${at + 1}`, secret: plainSecret(line) }))
  const stored = lines.filter(({ secret }) => secret !== '')
  const bad = stored.find(({ secret }) => faultOf(secret) !== null)
  if (stored.length > 0 && bad === undefined) return stored
  const why = bad === undefined ? 'contains no secret' : `${bad.label} ${faultOf(bad.secret) ?? ''}`
  throw new MirrorError('usage', `--secret-file ${path}: ${why}; it takes one secret a line`)
}

/** What is wrong with a secret to sign with; null when it will do. */
function signingFault(secret: string): string | null {
  if (privateKeySeed(secret) !== null) return null
  if (publicKeyBytes(secret) !== null) return CANNOT_SIGN
  return webhookSecretFault(secret)
}

const CANNOT_SIGN = 'is a public key (whpk_), which cannot sign: the sender has the private one (whsk_)'
