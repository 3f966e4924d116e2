import { isLeaderUnknown } from '../../base/domain/status.ts'
import type { FleetStatus } from '../../base/reports/fleet.ts'
import type { Figures, Metric, Sample } from './figures.ts'
import { seconds } from './series.ts'

const one =
  (value: (fleet: FleetStatus) => number | null) =>
  ({ fleet }: Figures): Sample[] =>
    fleet === undefined ? [] : [[value(fleet)]]

const requests = ({ fleet }: Figures): Sample[] =>
  Object.entries(fleet?.requests ?? {}).flatMap(([verb, outcomes]) =>
    Object.entries(outcomes).map(([outcome, count]): Sample => [count, verb, outcome]),
  )

/** The metrics of a mirror's part in a fleet; without a fleet there are no series. */
export const FLEET_METRICS: readonly Metric[] = [
  [
    'patchmirror_fleet_head_generation',
    'The newest generation that this mirror knows of.',
    'gauge',
    [],
    one(({ seen }) => seen),
  ],
  [
    'patchmirror_fleet_served_generation',
    'The generation that is served; 0: none.',
    'gauge',
    [],
    one(({ served }) => served),
  ],
  [
    'patchmirror_fleet_lag_seconds',
    'For how long the newest known generation should have been served and is not.',
    'gauge',
    [],
    one(({ lagSeconds }) => lagSeconds),
  ],
  [
    'patchmirror_fleet_publish_timestamp_seconds',
    'When the newest known generation was published.',
    'gauge',
    [],
    one(({ publishedAt }) => seconds(publishedAt)),
  ],
  [
    'patchmirror_fleet_leader',
    '1: this mirror leads: it syncs and publishes.',
    'gauge',
    [],
    one(({ leads }) => Number(leads)),
  ],
  [
    'patchmirror_fleet_has_leader',
    '1: a mirror leads; 0: none does; absent: it is not known.',
    'gauge',
    [],
    one((fleet) => (isLeaderUnknown(fleet) ? null : Number(fleet.leads || fleet.leader !== null))),
  ],
  [
    'patchmirror_fleet_epoch',
    'Epoch of the own leadership, else of the newest known generation.',
    'gauge',
    [],
    one(({ epoch }) => epoch),
  ],
  [
    'patchmirror_fleet_holding_back_seconds',
    'For how long newer snapshots are stored than the fleet serves.',
    'gauge',
    [],
    one(({ holdingBackSince }) =>
      holdingBackSince === null ? 0 : Math.max(0, (Date.now() - Date.parse(holdingBackSince)) / 1000),
    ),
  ],
  [
    'patchmirror_fleet_paused',
    '1: this mirror leads and syncs nothing: a rollback was published and not released.',
    'gauge',
    [],
    one(({ paused }) => Number(paused)),
  ],
  [
    'patchmirror_fleet_requests_total',
    'Calls of the object store since the start.',
    'counter',
    ['verb', 'outcome'],
    requests,
  ],
  [
    'patchmirror_fleet_bytes_total',
    'Bytes of objects since the start.',
    'counter',
    ['direction'],
    ({ fleet }) =>
      fleet === undefined
        ? []
        : [
            [fleet.bytes.up, 'up'],
            [fleet.bytes.down, 'down'],
          ],
  ],
  [
    'patchmirror_fleet_failing',
    '1: the last look at the object store, or publication, failed.',
    'gauge',
    [],
    one(({ failing }) => Number(failing !== null)),
  ],
  [
    'patchmirror_fleet_refused',
    '1: the newest generation is refused.',
    'gauge',
    [],
    one(({ failing }) => Number(failing !== null && failing.refused !== null)),
  ],
  [
    'patchmirror_fleet_fenced_total',
    'Times that another mirror had published under a newer lease, since the start.',
    'counter',
    [],
    one(({ fenced }) => fenced),
  ],
]
