import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import { webhookSecretFault } from '../config/secrets.ts'
import { secretFilePath } from '../config/webhooks.ts'
import { MirrorError, messageOf } from '../errors.ts'
import { type KeptSecret, parseSecretFile, readSecretText } from '../webhooks/secret-file.ts'

/** A secret by the name that inbox and log give it. */
export interface HeldSecret {
  readonly label: string
  readonly secret: string
}

/** What the secret file holds, expired ones too; empty when there is none. Throws `config`. */
export function readKeptSecrets(config: Config): KeptSecret[] {
  const path = secretFilePath(config)
  const text = readSecretText(path)
  return text === null ? [] : parseSecretFile(text, path)
}

/** Every secret that this mirror holds, those of the settings first. Throws `config`. */
export function readHeldSecrets(config: Config): HeldSecret[] {
  const fixed = config.webhooks.secrets.map((secret, at) => ({
    label: `settings-${at + 1}`,
    secret,
  }))
  return [...fixed, ...readKeptSecrets(config)]
}

/** Secrets from a file with one a line, named by their lines. Throws `usage`, and quotes none. */
export function readSecretLines(path: string): HeldSecret[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new MirrorError('usage', `--secret-file ${path}: ${messageOf(error)}`, { cause: error })
  }
  const lines = text
    .split(/\r?\n/)
    .map((line, at) => ({ label: `line ${at + 1}`, secret: line.trim() }))
  const held = lines.filter(({ secret }) => secret !== '')
  const bad = held.find(({ secret }) => webhookSecretFault(secret) !== null)
  if (held.length > 0 && bad === undefined) return held
  const why =
    bad === undefined ? 'holds no secret' : `${bad.label} ${webhookSecretFault(bad.secret) ?? ''}`
  throw new MirrorError('usage', `--secret-file ${path}: ${why}; it takes one secret a line`)
}
