import type { Config } from '../../config/schema.ts'
import { compareSettings } from '../../config/running/compare.ts'
import { daemonSettings } from '../../store/database/daemon-settings.ts'
import { isLocked } from '../../store/database/lock.ts'
import { accountChecks } from './account.ts'
import { carriedChecks } from './carried.ts'
import { type CheckResult, type DoctorCheck, type Finding, fine, runChecks, skipped, warning } from './check.ts'
import { fleetChecks } from './fleet.ts'
import { databaseChecks } from './database.ts'
import { folderChecks } from './data-folder.ts'
import { networkChecks } from './network/checks.ts'
import { type ServiceProbe, openProbe, serviceChecks } from './network/service.ts'
import { programChecks } from './program.ts'
import { receiverChecks } from './receivers.ts'
import { sourceChecks } from './sources.ts'
import type { DoctorWorld } from './world.ts'

/**
 * Examines the whole mirror, with or without a running daemon: reads alone, but for a small file that is written into the
 * data folder and removed. Each check is bounded by `timeoutMs`. Never rejects.
 */
export async function examineMirror(world: DoctorWorld): Promise<CheckResult[]> {
  const { loaded, timeoutMs } = world
  const program = programChecks(world)
  if (loaded === null) return runChecks(program, timeoutMs)
  const probe = openProbe(world, loaded.config)
  try {
    return await runChecks([...program, ...mirrorChecks(world, loaded.config, probe)], timeoutMs)
  } finally {
    await probe.upstream.close()
  }
}

function mirrorChecks(world: DoctorWorld, config: Config, probe: ServiceProbe): DoctorCheck[] {
  const network = [...networkChecks(world, config), ...serviceChecks(world, config, probe)]
  return [
    ...folderChecks(world, config),
    ...databaseChecks(world, config),
    ...settingsInUseChecks(config),
    ...network,
    ...receiverChecks(world, config),
    ...accountChecks(world, config, probe),
    ...sourceChecks(world, config),
    ...carriedChecks(world, config),
    ...fleetChecks(world, config),
  ]
}

/** Creates the check of the settings that the running daemon uses. */
function settingsInUseChecks(config: Config): DoctorCheck[] {
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
