import type { Config } from '../../../config/schema.ts'
import { plainSecret, webhookSecretFault } from '../../../config/kinds/keys.ts'
import { secretFilePath } from '../../../config/kinds/webhooks.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { type KeptSecret, replaceSecretFile } from '../../../webhooks/receive/secret-file.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { readKeptSecrets } from '../../../cli/webhooks/secrets.ts'
import { type Made, itemIdOf } from '../service-answer.ts'

/** The secret file in the hands of one command; a running receiver takes every change by itself. */
export interface SecretKeeper {
  readonly path: string
  /** All that is not expired. */
  readonly list: () => KeptSecret[]
  /** Replaces the whole file, without what has expired. Throws `storage`. */
  readonly replace: (secrets: readonly KeptSecret[]) => void
}

/**
 * Calls `work` with the secret file, which no other command changes meanwhile. That it can be written is tried first, so
 * that no secret is made that could not be kept. Throws `storage`, `config` and `locked`, all before `work`.
 */
export async function withSecretKeeper<T>(config: Config, work: (keeper: SecretKeeper) => Promise<T>): Promise<T> {
  const path = secretFilePath(config)
  const lock = acquireLock(config.data.dir, 'secrets')
  try {
    const list = (): KeptSecret[] => {
      const now = Date.now()
      return readKeptSecrets(config).filter(({ notAfter }) => notAfter === null || notAfter >= now)
    }
    const replace = (secrets: readonly KeptSecret[]): void => replaceSecretFile(path, secrets)
    prove(() => replace(list()))
    return await work({ path, list, replace })
  } finally {
    lock.release()
  }
}

function prove(write: () => void): void {
  try {
    write()
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'storage') throw error
    const text = `${error.message}. Nothing was asked of the service: let this user write there`
    throw new MirrorError('storage', text, { cause: error })
  }
}

/** What came of keeping a new subscription's secret; `problem` null: it is in the file, under the label. */
export interface StoredSecretResult {
  readonly label: string
  readonly secret: string | null
  readonly problem: string | null
}

/** Writes the secret of a new subscription into the file. Never throws: the service does not return the secret again. */
export function keepSecret(keeper: SecretKeeper, made: Made): StoredSecretResult {
  if (made.secret === null) return { label: '', secret: null, problem: NO_SECRET }
  const secret = plainSecret(made.secret)
  const subscription = itemIdOf(made.item)
  try {
    const stored = keeper.list()
    const label = labelFor(subscription, stored)
    const fault = webhookSecretFault(secret)
    if (fault !== null) return { label, secret, problem: `it cannot be kept, for it ${fault}` }
    keeper.replace([...stored, { label, secret, subscription, notBefore: null, notAfter: null }])
    return { label, secret, problem: null }
  } catch (error) {
    return { label: '', secret, problem: messageOf(error) }
  }
}

const NO_SECRET = 'no secret was found in the answer of the service'

function labelFor(subscription: string | null, stored: readonly KeptSecret[]): string {
  const isFree = (label: string): boolean => stored.every((one) => one.label !== label)
  if (subscription !== null && /^[\w.-]{1,64}$/.test(subscription) && isFree(subscription)) return subscription
  let number = stored.length + 1
  while (!isFree(`registered-${number}`)) number++
  return `registered-${number}`
}
