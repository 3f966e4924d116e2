import { FLEET_PAUSED } from '../../../base/domain/status.ts'
import type { FleetStatus } from '../../../base/reports/fleet.ts'
import { timeOf } from '../../output.ts'

/** Returns the lines of `patchmirror status` on the part of a mirror in its fleet. */
export function describeFleet(fleet: FleetStatus): string[] {
  const { role, seen, served, lagSeconds, failing, holdingBackSince } = fleet
  const at = (time: string): string => timeOf(Date.parse(time))
  const what = served === 0 ? 'no generation is served yet' : `generation ${served} is served`
  const newest = seen > served ? `, ${seen} is published` : ''
  const lag = lagSeconds !== null && lagSeconds > 0 ? `, ${lagSeconds} s behind` : ''
  const since = fleet.publishedAt === null ? '' : `, published on ${at(fleet.publishedAt)}`
  return [
    `fleet: ${fleet.name} (${role}) ${leadWords(fleet)}`,
    `fleet: ${what}${newest}${lag}${since}, from ${fleet.url}`,
    ...(fleet.paused ? [`fleet: ${FLEET_PAUSED}`] : []),
    ...(holdingBackSince === null
      ? []
      : [`fleet: newer snapshots are stored since ${at(holdingBackSince)} and not served by the fleet yet`]),
    ...(failing === null ? [] : [`fleet: failing since ${at(failing.since)}: ${failing.message}`]),
  ]
}

/** Returns whether the mirror leads its fleet, or which one does, in words. */
function leadWords({ leads, leader, epoch }: FleetStatus): string {
  if (leads) return `leads (epoch ${epoch})`
  if (leader === null) return 'follows; no mirror has the lease'
  return `follows; ${leader.name} leads (epoch ${leader.epoch})`
}
