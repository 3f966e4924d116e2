import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { arch, platform, release } from 'node:os'
import { resolve } from 'node:path'
import { describeConfig } from '../../../config/describe.ts'
import type { LoadedConfig } from '../../../config/load.ts'
import { MirrorError, messageOf, whyUnreadable } from '../../../base/errors.ts'
import { expectFile } from '../../../base/files.ts'
import { toIso } from '../../../base/time.ts'
import { LIBRARY_VERSIONS, VERSION } from '../../../base/version.ts'
import { refuseUnwritable } from '../../bundles/cli/files.ts'
import { examineMirror } from '../doctor.ts'
import { writeSupportArchive } from '../support/archive.ts'
import { createScrubber } from '../support/scrub.ts'
import { collectSecrets } from '../support/secrets.ts'
import { newestOf } from '../../../store/database/schema/schema.ts'
import { inspectDatabases } from '../../../store/database/inspect.ts'
import { withReads } from '../../../store/reads.ts'
import { type GlobalOptions, print, printJson } from '../../../cli/context.ts'
import { doctorWorld } from './world.ts'

/** How many of the last runs the archive has, and how many bytes of a log. */
const RUNS = 100
const LOG_BYTES = 2_000_000

/** Options of `patchmirror doctor --save`. */
interface SupportOptions extends GlobalOptions {
  /** The zip file. */
  save: string
  log?: string
  json?: boolean
}

/** `patchmirror doctor --save FILE.zip`: never replaces a file. Throws `usage`. */
export async function supportCommand(options: SupportOptions): Promise<number> {
  const file = options.save
  refuseUnwritable(file) // before all that is examined for it
  const world = doctorWorld(options)
  const { loaded, problem } = world
  // Without the settings it is not known what is secret.
  if (loaded === null)
    throw new MirrorError(
      'config',
      `${problem ?? ''}\nCorrect the settings first: what is secret cannot be known without them.`,
    )
  const { config } = loaded
  const log = options.log === undefined ? {} : { 'log-tail.txt': tailOf(options.log) }
  const members = {
    'doctor.json': { checks: await examineMirror(world) },
    'status.json': await attempted(() => world.readStatus(config)),
    'runs.json': await attempted(() => readRuns(loaded)),
    'settings.json': { problem, settings: describeConfig(loaded) },
    'versions.json': await attempted(() => versionsOf(loaded)),
    ...log,
  }
  const scrub = createScrubber(collectSecrets(loaded, process.env))
  writeSupportArchive(resolve(file), members, scrub)
  if (options.json === true) printJson({ file: resolve(file), members: Object.keys(members) })
  else
    print(
      `${file} is written: ${Object.keys(members).join(', ')}. Secrets are masked, names of hosts, users, folders and images are not: read it before you send it.`,
    )
  return 0
}

/** Returns what `work` does, or why it failed: a part that is not available ends no report on the others. */
async function attempted(work: () => unknown): Promise<unknown> {
  try {
    return (await work()) ?? { missing: 'nothing is stored yet' }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

function readRuns({ config }: LoadedConfig): unknown {
  return withReads(config.data.dir, ({ runs }) =>
    runs.listRuns(RUNS).map((run) => ({
      ...run,
      startedAt: toIso(run.startedAt),
      endedAt: run.endedAt === null ? null : toIso(run.endedAt),
    })),
  )
}

function versionsOf({ config }: LoadedConfig): unknown {
  const databases = inspectDatabases(config.data.dir, { quick: false })
  return {
    patchmirror: VERSION,
    node: process.versions,
    system: { platform: platform(), release: release(), arch: arch() },
    libraries: LIBRARY_VERSIONS,
    schemas: databases.map(({ path, version, schema }) => ({ path, version, known: newestOf(schema) })),
    madeAt: toIso(Date.now()),
  }
}

/** Returns the end of a log file, from the beginning of a line. */
function tailOf(path: string): string {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = fstatSync(file)
      expectFile(stats)
      const { size } = stats
      const from = Math.max(0, size - LOG_BYTES)
      const bytes = Buffer.alloc(size - from)
      const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, from))
      return from === 0 ? text : text.slice(text.indexOf('\n') + 1)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw new MirrorError('usage', `--log ${path} cannot be read: ${whyUnreadable(error)}`, { cause: error })
  }
}
