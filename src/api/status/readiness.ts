import type { Config } from '../../config/schema.ts'
import type { SourceName } from '../../domain/sources.ts'
import type { StorageState } from '../../store/disk-state.ts'
import { judgeFleet } from './fleet.ts'
import type { Status } from './report.ts'

/** The verdict for load balancers, with the reason for each source. */
interface Readiness {
  ready: boolean
  sources: { name: SourceName; ready: boolean; reason: string }[]
  storage: { ready: boolean } & StorageState
  /** In a fleet: whether its generations are served in time. */
  fleet?: ReturnType<typeof judgeFleet>
}

/** The settings that say when a mirror is ready. */
type ReadinessSettings = { readonly [Name in SourceName]: Pick<Config[Name], 'maxAgeHours'> } & {
  readonly fleet?: Pick<Config['fleet'], 'maxLagSeconds'>
}

/** Reports whether an age in milliseconds exceeds a limit in hours; counted in whole seconds, as the status shows it. */
export function isOverAge(ageMs: number, maxAgeHours: number): boolean {
  return Math.floor(ageMs / 1000) > maxAgeHours * 3600
}

/**
 * Ready: every source is served, by upstream's date no older than its `maxAgeHours`, the data folder is writable, and in a fleet
 * what it published is served.
 */
export function judgeReadiness(
  { sources, storage, fleet }: Pick<Status, 'sources' | 'storage' | 'fleet'>,
  config: ReadinessSettings,
  active: readonly SourceName[],
  now = Date.now(),
): Readiness {
  const own = sources.filter(({ name }) => active.includes(name))
  const judged = own.map(({ name, asOf, ageSeconds }) => {
    const { maxAgeHours } = config[name]
    if (asOf === null || ageSeconds === null)
      return { name, ready: false, reason: 'nothing mirrored yet' }
    const ready = !isOverAge(ageSeconds * 1000, maxAgeHours)
    const limit = `${ready ? 'within' : 'older than'} ${name}.maxAgeHours (${maxAgeHours})`
    return { name, ready, reason: `as of ${asOf}, ${limit}` }
  })
  const room = { ready: storage.state === 'ok', ...storage }
  const followed = fleet && judgeFleet(fleet, config.fleet?.maxLagSeconds ?? Infinity, now)
  const ready = room.ready && judged.every((one) => one.ready) && followed?.ready !== false
  return { ready, sources: judged, storage: room, ...(followed && { fleet: followed }) }
}
