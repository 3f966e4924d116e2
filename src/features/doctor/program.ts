import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { SOURCES } from '../../base/domain/sources.ts'
import { databasePath, openReader } from '../../store/database/open.ts'
import { createSnapshotReader } from '../../store/runs/snapshots.ts'
import { type DoctorCheck, failure, fine, warning } from './check.ts'
import type { DoctorWorld } from './world.ts'

/** Why `log.file` cannot be written, which ends the start of the daemon; null when it can, or is not set. */
function logFileFault(file: string | null): string | null {
  if (file === null) return null
  try {
    accessSync(existsSync(file) ? file : dirname(resolve(file)), constants.W_OK)
    return null
  } catch (error) {
    return `the log file ${file} (log.file) cannot be written (${messageOf(error)})`
  }
}

/** Reports whether the mirror has data, or a way to get some. */
function isFillable({ upstream, bundle, data, fleet }: Config): boolean {
  return upstream.apiRoot !== null || bundle.trustedKeys.length > 0 || fleet.url !== null || hasData(data.dir)
}

/** Reports whether something is stored; true as well where that cannot be read, which other checks report. */
function hasData(dir: string): boolean {
  try {
    const db = openReader(dir)
    if (db === null) return existsSync(databasePath(dir))
    try {
      const snapshots = createSnapshotReader(db)
      return SOURCES.some((source) => snapshots.readSnapshot(source) !== null)
    } finally {
      db.close()
    }
  } catch {
    return true
  }
}

/** Creates the checks of the program itself: its settings, and the Node.js that runs it. */
export function programChecks({ loaded, problem, node }: DoctorWorld): DoctorCheck[] {
  const settings: DoctorCheck = {
    name: 'settings',
    title: 'settings and the files that they name',
    needs: [],
    run() {
      if (problem !== null) return failure(problem, 'Correct what is named, and run this again.')
      const { warnings = [], origins, config } = loaded ?? {}
      const log = logFileFault(config?.log.file ?? null)
      if (log !== null)
        return failure(log, 'Create its folder for the user of the daemon, or set log.file to another file.')
      if (config !== undefined && !isFillable(config))
        return warning(
          'neither upstream.apiRoot nor bundle.trustedKeys is set: this mirror can sync nothing and import no signed bundle',
          'Set one of them, or name the settings file of the mirror with --config FILE or PATCHMIRROR_CONFIG.',
        )
      if (warnings.length > 0) return warning(warnings.join('; '), 'Change the settings that are named.')
      const own = [...(origins?.values() ?? [])].filter((origin) => origin !== 'default').length
      return fine(`${counted(own, 'setting differs', 'settings differ')} from the defaults`)
    },
  }
  const nodeVersion: DoctorCheck = {
    name: 'node',
    title: 'version of Node.js',
    needs: [],
    run: () =>
      isOlder(node.version, node.oldest)
        ? failure(
            `Node.js ${node.version} is older than ${node.oldest}, which this program needs`,
            `Install Node.js ${node.oldest} or newer.`,
          )
        : fine(`Node.js ${node.version} (at least ${node.oldest} is needed)`),
  }
  return [settings, nodeVersion]
}

/** Reports whether a version of numbers and dots is older than another; what is missing counts as 0. */
function isOlder(version: string, than: string): boolean {
  const [own, other] = [version, than].map((text) => text.split('.').map((part) => parseInt(part)))
  for (let at = 0; at < 3; at++) {
    const difference = (own?.[at] ?? 0) - (other?.[at] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}
