import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import { compareSettings } from '../../config/running/compare.ts'
import { counted } from '../../base/text.ts'
import { SOURCES } from '../../base/domain/sources.ts'
import { daemonSettings } from '../../store/database/daemon-settings.ts'
import { isLocked } from '../../store/database/lock.ts'
import { databasePath } from '../../store/database/open.ts'
import { type Finding, failure, fine, skipped, warning } from './check.ts'
import type { DoctorWorld, Examined } from './world.ts'
import { withReads } from '../../store/reads.ts'

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
    const hasAny = withReads(dir, ({ snapshots }) => SOURCES.some((source) => snapshots.readSnapshot(source) !== null))
    return hasAny ?? existsSync(databasePath(dir))
  } catch {
    return true
  }
}

/** Looks at the settings and the files that they name. */
export function settings({ loaded, problem }: DoctorWorld): Finding {
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
}

/** Compares the Node.js that runs this with the oldest one that does. */
export function nodeVersion({ node: { version, oldest } }: DoctorWorld): Finding {
  return isOlder(version, oldest)
    ? failure(
        `Node.js ${version} is older than ${oldest}, which this program needs`,
        `Install Node.js ${oldest} or newer.`,
      )
    : fine(`Node.js ${version} (at least ${oldest} is needed)`)
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

/** Compares the settings with those that the running daemon uses. */
export function settingsInUse({ config }: Examined): Finding {
  const { dir } = config.data
  if (!isLocked(dir, 'serve')) return skipped('no daemon serves this data folder')
  const used = daemonSettings(dir)
  if (used === null)
    return skipped('the daemon did not say which settings it uses: it is starting, its disk is full, or it is the demo')
  const { reload, restart } = compareSettings(used, config)
  if (reload.length + restart.length === 0) return fine('the daemon uses the settings as they are')
  const parts = [
    ...(reload.length === 0 ? [] : [`${reload.join(', ')} (in force after "patchmirror config --reload")`]),
    ...(restart.length === 0 ? [] : [`${restart.join(', ')} (in force only after a restart)`]),
  ]
  return warning(
    `the running daemon uses other values than the settings have now: ${parts.join('; ')}`,
    `${restart.length === 0 ? 'Run "patchmirror config --reload"' : 'Restart the daemon'}. ` +
      'If the daemon gets variables that this command did not, as from a unit, run the doctor with the same ones.',
  )
}
