import { clip } from '../../../../base/text.ts'
import type { FleetStatus } from '../../../../base/reports/fleet.ts'
import { FLEET_PAUSED, describeLeaderless } from '../../../../base/domain/status.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, count, plain, size, span, state, time } from '../../../lookup/answers/cells.ts'
import type { PageCall, PageView } from '../../page.ts'

/** Loads the page of the fleet: who leads it, and which generation this mirror serves. */
export function loadFleet(call: PageCall): PageView {
  const fleet = call.status?.fleet
  const off: Block = { kind: 'facts', rows: [['state', plain('off: this mirror is in no fleet (fleet.url)')]] }
  if (fleet === undefined) return { title: 'Fleet', blocks: [off] }
  return {
    title: 'Fleet',
    blocks: [
      ...faultsOf(fleet),
      { kind: 'facts', title: 'This mirror', rows: ownRows(call, fleet) },
      { kind: 'facts', title: 'Generations', rows: generationRows(call, fleet) },
    ],
  }
}

type Rows = [string, Cell | Cell[]][]

function faultsOf({ failing, paused, served }: FleetStatus): Block[] {
  const stopped: Block = { kind: 'notice', tone: 'warn', title: 'The fleet is paused', text: FLEET_PAUSED }
  if (failing === null) return paused ? [stopped] : []
  const effect = served === 0 ? 'nothing is served yet' : 'what is stored is served'
  return [{ kind: 'notice', tone: 'bad', title: `The fleet fails here; ${effect}`, text: clip(failing.message, 600) }]
}

function ownRows({ now }: PageCall, fleet: FleetStatus): Rows {
  const { name, site, role, leads, leader, epoch } = fleet
  const who: Cell[] = leader === null ? [plain(describeLeaderless(fleet))] : [plain(leader.name)]
  return [
    ['name', plain(name)],
    ...(site === null ? [] : ([['site', plain(site)]] satisfies Rows)),
    ['role', plain(role)],
    ['leads', leads ? state('yes', 'good') : plain('no')],
    ['leader', leader === null ? who : [...who, { ...time(leader.expiresAt, now), note: 'lease until' }]],
    ['epoch', count(epoch)],
    ['object store', plain(fleet.url)],
    ['since the start', [size(fleet.bytes.up), plain('written'), size(fleet.bytes.down), plain('read')]],
  ]
}

function generationRows({ now }: PageCall, fleet: FleetStatus): Rows {
  const { served, prepared, seen, lagSeconds, publishedAt, activatesAt } = fleet
  const words = served === 0 ? 'none yet' : String(served)
  return [
    ['served', state(words, served > 0 && served >= seen ? 'good' : 'warn')],
    ['prepared', count(prepared)],
    ['newest known', count(seen)],
    ['published', time(publishedAt, now)],
    ['activates', time(activatesAt, now)],
    ['late by', plain(lagSeconds === null ? null : span(lagSeconds))],
  ]
}
