import { type SecureContext, createSecureContext } from 'node:tls'
import { MirrorError, messageOf } from './errors.ts'
import { briefReason, readNamedFile } from './files.ts'

/** PEM files of a certificate (with its chain) and of its private key. */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** Content of both files. */
interface KeyPair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Options of a TLS server; older versions of TLS are refused. */
type TlsOptions = KeyPair & { readonly minVersion: 'TLSv1.2' }

/** A TLS server, as far as its certificate is concerned. */
interface TlsServer {
  setSecureContext(options: TlsOptions): unknown
}

/** What follows the files of a certificate. */
export type CertificateFollower = ReturnType<typeof followCertificate>

/** A certificate is renewed every few weeks; a minute late is early enough. */
const RENEWAL_MS = 60_000

/** Reads certificate and key. Throws `config`, which names the settings, for files that cannot be used or do not match. */
export function readCertificate(files: CertificateFiles, section: string): TlsOptions {
  const names = `${section}.certFile and ${section}.keyFile`
  const pair = attempt(`${names} cannot be read`, () => readPair(files))
  attempt(`${names} cannot be used together`, () => check(pair))
  return { ...pair, minVersion: 'TLSv1.2' }
}

/** The settings of a listener that may have a certificate. */
interface CertifiedSection {
  readonly certFile: string | null
  readonly keyFile: string | null
}

/** Returns why a start would refuse the files of certificates as they are now; the words name no folder. */
export function faultsOfCertificates(config: Readonly<Record<'server' | 'webhooks', CertifiedSection>>) {
  return (['server', 'webhooks'] as const).flatMap((section) => {
    const { certFile, keyFile } = config[section]
    if (certFile === null || keyFile === null) return []
    try {
      check(readPair({ certFile, keyFile }))
      return []
    } catch (error) {
      const why = briefReason(error, 'not known')
      return [{ key: `${section}.certFile`, fault: `cannot be used with ${section}.keyFile (${why})` }]
    }
  })
}

/**
 * Follows the files of a server's certificate: a changed pair is used for new connections. One that cannot be used, as in
 * the middle of a renewal, is logged, and the pair in use stays.
 */
export function followCertificate(
  server: TlsServer,
  files: CertificateFiles,
  { section, used, log, everyMs = RENEWAL_MS }: FollowOptions,
) {
  let last: KeyPair | null = used
  let fault: string | null = null
  const renew = (): void => {
    try {
      const found = readPair(files)
      if (last !== null && found.cert.equals(last.cert) && found.key.equals(last.key)) return
      last = found
      check(found)
      server.setSecureContext({ ...found, minVersion: 'TLSv1.2' })
      fault = null
      log?.info({ file: files.certFile }, `took the renewed certificate of ${section}.certFile`)
    } catch (error) {
      const text = messageOf(error)
      if (text === fault) return
      fault = text
      const message = `the renewed certificate (${section}.certFile, ${section}.keyFile) cannot be used, the one in use stays: ${text}`
      log?.error({ file: files.certFile }, message)
    }
  }
  const timer = setInterval(renew, everyMs).unref()
  return {
    /** Reads the files now; a changed pair is used for new connections. */
    renew,
    /** Stops looking at the files. */
    stop: (): void => clearInterval(timer),
  }
}

interface FollowOptions {
  /** Section of the settings that name the files, for messages. */
  readonly section: string
  /** The pair that the server started with. */
  readonly used: KeyPair
  readonly log: {
    info(fields: object, message: string): void
    error(fields: object, message: string): void
  } | null
  /** How often the files are looked at, milliseconds; every minute when not given. */
  readonly everyMs?: number
}

function readPair({ certFile, keyFile }: CertificateFiles): KeyPair {
  return { cert: readNamedFile(certFile), key: readNamedFile(keyFile) }
}

/** Throws OpenSSL's error for a pair that cannot be used. */
function check(pair: KeyPair): SecureContext {
  return createSecureContext(pair)
}

function attempt<T>(fault: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw new MirrorError('config', `${fault} (${messageOf(error)})`, { cause: error })
  }
}
