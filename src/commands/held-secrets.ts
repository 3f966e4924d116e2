import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import {
  plainSecret,
  privateKeySeed,
  publicKeyBytes,
  webhookSecretFault,
} from '../config/secrets.ts'
import { secretFilePath } from '../config/webhooks.ts'
import { MirrorError, whyUnreadable } from '../errors.ts'
import { type KeptSecret, parseSecretFile, readSecretText } from '../webhooks/secret-file.ts'

/** A secret by the name that inbox and log give it, and when it counts (unix milliseconds; null: always). */
export type StoredSecret = Pick<KeptSecret, 'label' | 'secret' | 'notBefore' | 'notAfter'>

const ALWAYS = { notBefore: null, notAfter: null }

/** What the secret file holds, expired ones too; empty when there is none. Throws `config`. */
export function readKeptSecrets(config: Config): KeptSecret[] {
  const path = secretFilePath(config)
  const text = readSecretText(path)
  return text === null ? [] : parseSecretFile(text, path)
}

/** Every secret that this mirror holds, those of the settings first. Throws `config`. */
export function readStoredSecrets(config: Config): StoredSecret[] {
  const fixed = config.webhooks.secrets.map((secret, at) => ({
    ...ALWAYS,
    label: `settings-${at + 1}`,
    secret,
  }))
  return [...fixed, ...readKeptSecrets(config)]
}

/**
 * Secrets and public keys from a file with one a line, named by their lines; with `forSigning` private keys (`whsk_…`) too,
 * but no public ones. Throws `usage`, and quotes none.
 */
export function readSecretLines(path: string, forSigning = false): StoredSecret[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const message = `--secret-file ${path} cannot be read: ${whyUnreadable(error)}`
    throw new MirrorError('usage', message, { cause: error })
  }
  const faultOf = forSigning ? signingFault : webhookSecretFault
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line, at) => ({ ...ALWAYS, label: `line ${at + 1}`, secret: plainSecret(line) }))
  const held = lines.filter(({ secret }) => secret !== '')
  const bad = held.find(({ secret }) => faultOf(secret) !== null)
  if (held.length > 0 && bad === undefined) return held
  const why = bad === undefined ? 'holds no secret' : `${bad.label} ${faultOf(bad.secret) ?? ''}`
  throw new MirrorError('usage', `--secret-file ${path}: ${why}; it takes one secret a line`)
}

/** What is wrong with a secret to sign with; null when it will do. */
function signingFault(secret: string): string | null {
  if (privateKeySeed(secret) !== null) return null
  if (publicKeyBytes(secret) !== null) return CANNOT_SIGN
  return webhookSecretFault(secret)
}

const CANNOT_SIGN =
  'is a public key (whpk_), which cannot sign: the sender has the private one (whsk_)'
