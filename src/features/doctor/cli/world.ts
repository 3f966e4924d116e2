import { statfsSync } from 'node:fs'
import type { LoadedConfig } from '../../../config/load.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { OLDEST_NODE, VERSION } from '../../../base/version.ts'
import type { AnsweringDaemon, DoctorWorld } from '../world.ts'
import { probeStorage } from '../../../store/disk-state.ts'
import { type GlobalOptions, loadSettings } from '../../../cli/context.ts'
import { askDaemon, daemonUrl } from '../../../cli/daemon-client.ts'
import { gatherStatus } from '../../../cli/mirror/status/gather.ts'
import { readKeptSecrets, readStoredSecrets } from '../../../cli/webhooks/secrets.ts'
import type { KeptSecret } from '../../../webhooks/receive/secret-file.ts'

/** Limit of each check, milliseconds; the quick check of a large database is not bounded by it. */
const CHECK_MS = 20_000
const DAEMON_MS = 3_000

/** Returns what the doctor examines with these options of the command line. */
export function doctorWorld(options: GlobalOptions): DoctorWorld {
  return {
    ...readSettings(options),
    env: process.env,
    version: VERSION,
    node: { version: process.versions.node, oldest: OLDEST_NODE },
    now: Date.now,
    timeoutMs: CHECK_MS,
    fileSystemType: (dir) => statfsSync(dir).type,
    probeStorage,
    findDaemon,
    readStatus: async (config) => (await gatherStatus(config)).status,
    readSecrets: (config) => readStoredSecrets(config, keptSecrets(config)).map(({ secret: _, ...known }) => known),
  }
}

function keptSecrets(config: Config): KeptSecret[] {
  try {
    return readKeptSecrets(config)
  } catch (error) {
    if (error instanceof MirrorError) return []
    throw error
  }
}

/** Reads the settings; where only files that they name are broken, without these. */
function readSettings(options: GlobalOptions): Pick<DoctorWorld, 'loaded' | 'problem'> {
  try {
    return { loaded: loadSettings(options, false), problem: null }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return { loaded: withoutFiles(options), problem: error.message }
  }
}

function withoutFiles(options: GlobalOptions): LoadedConfig | null {
  try {
    return loadSettings(options, false, [])
  } catch (error) {
    if (error instanceof MirrorError) return null
    throw error
  }
}

/** Asks the address of the settings which daemon answers; `port`: the one that a daemon with a free port chose. */
async function findDaemon(config: Config, port: number | null): Promise<AnsweringDaemon | null> {
  const server = { ...config.server, ...(config.server.port === 0 && port !== null && { port }) }
  if (server.port === 0 && server.socket === null) return null
  try {
    const ask = (path: string, method: 'GET' | 'OPTIONS' = 'GET') =>
      askDaemon({ ...config, server }, path, DAEMON_MS, method)
    const { instance } = await ask('/-/health')
    return { url: daemonUrl(server), instance, optionsOf: (path) => ask(path, 'OPTIONS') }
  } catch {
    return null // nothing answers
  }
}
