import { compareSettings } from '../../config/running/compare.ts'
import type { Config } from '../../config/schema.ts'
import { daemonSettings } from '../../store/database/daemon-settings.ts'
import { isLocked } from '../../store/database/lock.ts'
import { type DoctorCheck, type Finding, fine, skipped, warning } from './check.ts'

/** Creates the check of the settings that the running daemon uses. */
export function settingsInUseChecks(config: Config): DoctorCheck[] {
  return [
    {
      name: 'settings-in-use',
      title: 'settings of the running daemon',
      needs: ['settings', 'folder'],
      run: () => compare(config),
    },
  ]
}

function compare(config: Config): Finding {
  const { dir } = config.data
  if (!isLocked(dir, 'serve')) return skipped('no daemon serves this data folder')
  const used = daemonSettings(dir)
  if (used === null)
    return skipped('the daemon did not say which settings it uses: it is starting, or its disk is full')
  const { reload, restart } = compareSettings(used, config)
  if (reload.length + restart.length === 0) return fine('the daemon uses the settings as they are')
  const parts = [
    ...(reload.length === 0 ? [] : [`${reload.join(', ')} (in force after "patchmirror reload")`]),
    ...(restart.length === 0 ? [] : [`${restart.join(', ')} (in force only after a restart)`]),
  ]
  return warning(
    `the running daemon uses other values than the settings have now: ${parts.join('; ')}`,
    `${restart.length === 0 ? 'Run "patchmirror reload"' : 'Restart the daemon'}. ` +
      'If the daemon gets variables that this command did not, as from a unit, run the doctor with the same ones.',
  )
}
