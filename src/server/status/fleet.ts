import type { LeaderPage, Verdict } from '../../base/reports/readiness.ts'
import type { FleetStatus } from '../../base/reports/fleet.ts'

/**
 * Judges a mirror of a fleet: ready when it serves a generation that no newer one should have replaced for longer than
 * `maxLagSeconds`. A store that cannot be reached, or lost what is served, leaves it ready: it serves what it has, and that gets older.
 */
export function judgeFleet(
  { served, seen, lagSeconds, failing }: FleetStatus,
  maxLagSeconds: number,
  now: number,
): Verdict {
  const why = failing === null ? '' : `: ${failing.message}`
  if (served === 0) return { ready: false, reason: `no generation is served yet${why}` }
  const limit = `the ${maxLagSeconds} s that a mirror of a fleet may be behind`
  if (lagSeconds !== null && lagSeconds > maxLagSeconds) {
    const reason = `generation ${served} is served, and ${seen} since ${lagSeconds} s should be, longer than ${limit}${why}`
    return { ready: false, reason }
  }
  const isRefusing = failing !== null && failing.refused !== null && failing.refused !== 'backwards' // then none is newer
  const refusedFor = isRefusing ? (now - Date.parse(failing.since)) / 1000 : 0
  if (refusedFor > maxLagSeconds)
    return { ready: false, reason: `generations are refused for longer than ${limit}${why}` }
  return { ready: true, reason: `generation ${served} is served` }
}

/** Returns who leads; a mirror without a fleet leads itself. */
export function leaderPage(fleet: FleetStatus | undefined): LeaderPage {
  if (fleet === undefined) return { leader: true, epoch: null, name: null, url: null }
  const { leads, epoch, leader, name } = fleet
  return {
    leader: leads,
    epoch: leads ? epoch : (leader?.epoch ?? null),
    name: leads ? name : (leader?.name ?? null),
    url: leader?.url ?? null,
  }
}
