import { statSync } from 'node:fs'
import { decodedKey, publicKeyBytes } from '../../config/kinds/keys.ts'
import { messageOf } from '../../base/errors.ts'
import { fileMark } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { type KeptSecret, SecretFileError, parseSecretFile, readSecretText } from './secret-file.ts'
import { type SignatureDialect, type SigningSecret, createSigningSecret } from './signature.ts'

/** Where secrets come from. */
interface SecretsOptions {
  /** `webhooks.secrets`; they are called settings-1, settings-2 and so on. */
  readonly settings: () => readonly string[]
  /** The file that `webhooks register` writes; it need not exist. */
  readonly file: string
  readonly dialect: SignatureDialect | 'any'
  /** Unix milliseconds. */
  readonly now: () => number
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'> | null
}

/** The secrets in force. */
export type Secrets = ReturnType<typeof createSecrets>

/** What is wrong with a file of secrets, as words that follow its name, and whether what was read before is in force. */
interface SecretFault {
  readonly fault: string
  readonly kept: boolean
}

interface Prepared {
  readonly signing: SigningSecret
  readonly notBefore: number | null
  readonly notAfter: number | null
}

/** However quick a file is rewritten, its content is compared this often, milliseconds. */
const LOOK_MS = 1_000

/**
 * Reads the secrets. Throws `config` for a file that cannot be read or is malformed; when it becomes so later, that is
 * logged, and its previous content stays in force.
 */
export function createSecrets(options: SecretsOptions) {
  const { file, now, log, dialect } = options
  const fixed = fixedSecrets(options.settings)
  fixed()
  let text = readSecretText(file)
  let fromFile = text === null ? [] : prepare(text, file, dialect)
  let seen = { mark: fileMark(file), at: now() }
  let isMissed = false
  let refused: { readonly message: string; readonly what: string } | null = null
  if (text !== null) warnOfReaders(file, log)

  const look = (): void => {
    const mark = fileMark(file)
    const at = now()
    if (mark === seen.mark && Math.abs(at - seen.at) < LOOK_MS) return
    seen = { mark, at }
    try {
      const current = readSecretText(file)
      const read = current === null || current === text ? [] : prepare(current, file, dialect)
      refused = null
      if (current === text) return
      isMissed = current === null
      text = current
      fromFile = read
      log?.info({ file, secrets: fromFile.map(({ signing }) => signing.label) }, 'read the webhook secrets again')
      if (current !== null) warnOfReaders(file, log)
    } catch (error) {
      const message = messageOf(error)
      if (message !== refused?.message) log?.error({ file }, `${message} The secrets read before stay in force.`)
      refused = { message, what: error instanceof SecretFileError ? error.what : 'has a secret that cannot be used' }
    }
  }
  return {
    /** Returns the secrets that are valid now; reads the file again when it has changed. */
    active: (): readonly SigningSecret[] => {
      look()
      const time = now()
      return [...fixed(), ...fromFile]
        .filter(({ notBefore }) => notBefore === null || notBefore <= time)
        .filter(({ notAfter }) => notAfter === null || time <= notAfter)
        .map(({ signing }) => signing)
    },
    /** Returns what is wrong with the file that was read before; null: nothing. */
    fault: (): SecretFault | null => {
      look()
      if (refused !== null) return { fault: refused.what, kept: true }
      return isMissed ? { fault: 'is not there any more', kept: false } : null
    },
  }
}

/** Those of the settings, prepared once for each list. */
function fixedSecrets(settings: () => readonly string[]): () => readonly Prepared[] {
  let seen: readonly string[] | null = null
  let prepared: readonly Prepared[] = []
  return () => {
    const current = settings()
    if (current === seen) return prepared
    prepared = current.map((secret, at) => ({
      signing: createSigningSecret(`settings-${at + 1}`, secret),
      notBefore: null,
      notAfter: null,
    }))
    seen = current
    return prepared
  }
}

const DECODED: ReadonlySet<string> = new Set<SignatureDialect>(['standard', 'decoded-hex'])

function prepare(text: string, file: string, dialect: SignatureDialect | 'any'): Prepared[] {
  return parseSecretFile(text, file).map(({ label, secret, notBefore, notAfter }: KeptSecret) => {
    if (DECODED.has(dialect) && decodedKey(secret) === null && publicKeyBytes(secret) === null)
      throw new SecretFileError(
        file,
        `has a secret of another form: ${label} is not base64, and webhooks.dialect is ${dialect}`,
      )
    return { signing: createSigningSecret(label, secret), notBefore, notAfter }
  })
}

function warnOfReaders(file: string, log: SecretsOptions['log']): void {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  if ((mode & 0o077) !== 0 && process.platform !== 'win32')
    log?.warn({ file }, `others may read the webhook secrets: chmod 600 ${file}`)
}
