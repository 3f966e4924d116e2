import { MirrorError, whyUnreadable } from '../../base/errors.ts'
import { readCapture } from '../../webhooks/doctor/capture.ts'
import { type Diagnosis, diagnose } from '../../webhooks/doctor/diagnosis.ts'
import { TOLERANCE_SECONDS } from '../../webhooks/receive/headers.ts'
import { readStoredSecrets, readSecretLines } from './secrets.ts'
import { type GlobalOptions, print, settings } from '../context.ts'
import { table, visible } from '../output.ts'
import { readInput } from '../../base/files.ts'

/** Options of `patchmirror webhooks check`. */
interface DoctorOptions extends GlobalOptions {
  secretFile?: string
  at?: string
  json?: boolean
}

/** Much more than any delivery that is accepted. */
const MAX_BYTES = 64 * 1024 * 1024

/**
 * `patchmirror webhooks check FILE`: why a captured delivery was refused. 0 when this mirror takes it, else 1. Neither
 * secret nor signature nor body is printed.
 */
export async function doctorCommand(file: string, options: DoctorOptions): Promise<number> {
  const { secretFile } = options
  const { config } = settings(options, false, secretFile === undefined ? ['webhooks.secrets'] : [])
  const secrets = secretFile === undefined ? readStoredSecrets(config) : readSecretLines(secretFile)
  const diagnosis = diagnose({
    capture: readCapture(await read(file)),
    secrets,
    now: timeOf(options.at),
    dialect: config.webhooks.dialect,
    toleranceSeconds: TOLERANCE_SECONDS,
    canRegister: config.upstream.apiRoot !== null,
  })
  if (options.json === true) print(JSON.stringify(diagnosis, null, 2))
  else printDiagnosis(diagnosis, secrets.length)
  return diagnosis.verdict === 'accepted' ? 0 : 1
}

function printDiagnosis({ verdict, problems, match, ageSeconds }: Diagnosis, secretCount: number): void {
  const age = ageSeconds === null ? '-' : `${ageSeconds} s`
  const rows = [
    ['verdict', verdict],
    ['secrets tried', String(secretCount)],
    ['age', age],
    ['secret', match?.secret ?? '-'],
    ['form', match?.form ?? '-'],
  ]
  print(table(['what', 'found'], rows))
  for (const problem of problems) print(`\n- ${visible(problem)}`)
}

function timeOf(text: string | undefined): number {
  if (text === undefined) return Date.now()
  const time = /^\d{1,12}$/.test(text) ? Number(text) * 1000 : Date.parse(text)
  if (!Number.isNaN(time)) return time
  const example = '2026-11-21T09:00:00Z or unix seconds'
  throw new MirrorError('usage', `--at ${text}: not a time such as ${example}`)
}

async function read(file: string): Promise<Buffer> {
  let bytes: Buffer | null
  try {
    bytes = await readInput(file, MAX_BYTES)
  } catch (error) {
    throw new MirrorError('usage', `the delivery ${file} cannot be read: ${whyUnreadable(error)}`, {
      cause: error,
    })
  }
  if (bytes !== null) return bytes
  throw new MirrorError('usage', `${file}: larger than 64 MiB, that is no delivery`)
}
