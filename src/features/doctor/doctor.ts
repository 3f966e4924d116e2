import type { Config } from '../../config/schema.ts'
import { accountChecks } from './account.ts'
import { carriedChecks } from './carried.ts'
import { type DoctorCheck, type CheckResult, runChecks } from './check.ts'
import { fleetChecks } from './fleet.ts'
import { databaseChecks } from './database.ts'
import { folderChecks } from './data-folder.ts'
import { networkChecks } from './network/checks.ts'
import { type ServiceProbe, openProbe, serviceChecks } from './network/service.ts'
import { programChecks } from './program.ts'
import { receiverChecks } from './receivers.ts'
import { settingsInUseChecks } from './settings-in-use.ts'
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
