import { handleOfTarget, isRegistryAsked } from '../../base/domain/status.ts'
import { FLEET_METRICS } from './fleet.ts'
import type { Metric, Sample } from './figures.ts'
import {
  SOURCE_STATES,
  STORAGE_STATES,
  TARGET_STATES,
  flag,
  latencies,
  ofStates,
  ofWeek,
  perSource,
  perView,
  problem,
  refreshes,
  seconds,
  runSeconds,
  settledBundles,
  signaturesOf,
} from './series.ts'

/** Every metric whose value is read for each page, in the page's order. */
export const METRICS: readonly Metric[] = [
  [
    'patchmirror_webhook_inbox_rows',
    'Webhooks remembered, by state.',
    'gauge',
    ['state'],
    ({ webhooks }) => Object.entries(webhooks?.counts ?? {}).map(([state, rows]) => [rows, state]),
  ],

  [
    'patchmirror_source_state',
    'State of a source: 1 for the one it is in.',
    'gauge',
    ['source', 'state'],
    ({ sources }) => sources.flatMap(({ name, state }) => ofStates(SOURCE_STATES, state, name)),
  ],
  [
    'patchmirror_source_synced',
    '0: stored, and not synced any more, since its credential is not set.',
    'gauge',
    ['source'],
    perSource(({ unsynced }) => flag(unsynced === null)),
  ],
  [
    'patchmirror_source_age_seconds',
    'Age of what is served, by the date of upstream; absent while that date is later than the clock.',
    'gauge',
    ['source'],
    perSource(({ ageSeconds }) => ageSeconds),
  ],
  [
    'patchmirror_source_as_of_timestamp_seconds',
    'Date of upstream of what is served.',
    'gauge',
    ['source'],
    perSource(({ asOf }) => seconds(asOf)),
  ],
  [
    'patchmirror_source_last_attempt_timestamp_seconds',
    'When the last run started.',
    'gauge',
    ['source'],
    perSource(({ lastRun }) => seconds(lastRun?.startedAt ?? null)),
  ],
  [
    'patchmirror_source_last_success_timestamp_seconds',
    'When the last run ended that was complete.',
    'gauge',
    ['source'],
    perSource(({ lastSuccessAt }) => seconds(lastSuccessAt)),
  ],
  [
    'patchmirror_source_last_change_timestamp_seconds',
    'When the last snapshot was published that differs from the one before.',
    'gauge',
    ['source'],
    perSource(({ lastChangeAt }) => seconds(lastChangeAt)),
  ],
  [
    'patchmirror_quarantine_open',
    'Refused documents that wait for approve or reject.',
    'gauge',
    ['source'],
    perSource(({ openQuarantines }) => openQuarantines),
  ],
  [
    'patchmirror_doubtful_changes',
    'Changes that a run of the last day published although its guard doubted them, until they are acknowledged.',
    'gauge',
    ['source'],
    perSource(({ doubtful }) => (doubtful?.kinds ?? []).reduce((sum, { records }) => sum + records, 0)),
  ],
  ['patchmirror_source_records', 'Records served.', 'gauge', ['source'], perSource(({ records }) => records)],
  [
    'patchmirror_source_partial_lists',
    'Lists served that are not known to be complete.',
    'gauge',
    ['source'],
    perSource(({ partialListCount }) => partialListCount),
  ],
  [
    'patchmirror_source_last_run_seconds',
    'How long the last run took.',
    'gauge',
    ['source'],
    perSource(({ lastRun }) => (lastRun === null ? null : runSeconds(lastRun))),
  ],
  [
    'patchmirror_catalog_signatures',
    'Artifacts by what the verification of their signatures came to.',
    'gauge',
    ['state'],
    ({ sources }) => sources.flatMap(signaturesOf),
  ],

  [
    'patchmirror_verify_end_timestamp_seconds',
    'When the last verification of all that is stored ended.',
    'gauge',
    [],
    ({ verified }) => [[seconds(verified?.endedAt ?? null)]],
  ],
  [
    'patchmirror_verify_damaged',
    'Parts that the last verification found damaged, and nothing healed since.',
    'gauge',
    [],
    ({ verified }) => [[verified?.damagedCount ?? null]],
  ],

  [
    'patchmirror_webhook_refreshes_total',
    'Refreshes that webhooks caused since the start, by outcome.',
    'counter',
    ['outcome'],
    refreshes,
  ],
  [
    'patchmirror_webhook_latency_seconds',
    'Time from being received, of the newest webhooks that are done.',
    'gauge',
    ['stage', 'percentile'],
    latencies,
  ],
  [
    'patchmirror_webhook_unannounced_changes',
    'Tags of a week that a poll found and no webhook announced.',
    'gauge',
    ['window'],
    ofWeek(({ unannounced }) => unannounced),
  ],
  [
    'patchmirror_webhook_unconfirmed_announcements',
    'Webhooks of a week whose tag was not found.',
    'gauge',
    ['window'],
    ofWeek(({ unconfirmed }) => unconfirmed),
  ],
  [
    'patchmirror_webhook_subscription_suspect',
    '1: changes come, webhooks do not.',
    'gauge',
    ['window'],
    ofWeek(({ warning }) => flag(warning !== null)),
  ],

  [
    'patchmirror_relay_target_state',
    'State of a target: 1 for the one it is in.',
    'gauge',
    ['target', 'state'],
    ({ relay }) => relay.flatMap((one) => ofStates(TARGET_STATES, one.state, handleOfTarget(one))),
  ],
  [
    'patchmirror_relay_waiting',
    'Events that wait for a target.',
    'gauge',
    ['target'],
    ({ relay }) => relay.map((one) => [one.pending, handleOfTarget(one)]),
  ],
  [
    'patchmirror_relay_given_up_total',
    'Events that a target never took.',
    'counter',
    ['target'],
    ({ relay }) => relay.map((one) => [one.givenUp, handleOfTarget(one)]),
  ],

  [
    'patchmirror_bundle_sequence',
    'Number of the bundle that was imported last.',
    'gauge',
    [],
    ({ bundle }) => [[bundle?.sequence ?? null]],
  ],
  [
    'patchmirror_bundle_import_timestamp_seconds',
    'When a bundle was imported last.',
    'gauge',
    [],
    ({ bundle }) => [[bundle ? Date.parse(bundle.importedAt) / 1000 : null]],
  ],

  [
    'patchmirror_views_current',
    '1: what scanners read shows what is served.',
    'gauge',
    ['kind'],
    perView(({ state }) => state === 'current'),
  ],
  ['patchmirror_views_making', '1: it is made just now.', 'gauge', ['kind'], perView(({ making }) => making)],
  [
    'patchmirror_views_failing',
    '1: it could not be made the last time.',
    'gauge',
    ['kind'],
    perView(({ failing }) => failing),
  ],

  [
    'patchmirror_tags_judged',
    'Mirrored tags, by whether their SBOM could be read and judged.',
    'gauge',
    ['judged'],
    ({ findings: of }) =>
      of === undefined || of.state === 'none'
        ? []
        : [
            [of.judged, 'yes'],
            [of.tags - of.judged, 'no'],
          ],
  ],
  [
    'patchmirror_tags_current',
    '1: the tags are judged by what is served.',
    'gauge',
    [],
    ({ findings: of }) => (of === undefined ? [] : [[flag(of.state === 'current')]]),
  ],
  [
    'patchmirror_tags_failing',
    '1: the tags could not be judged the last time.',
    'gauge',
    [],
    ({ findings: of }) => (of === undefined ? [] : [[flag(of.failing)]]),
  ],

  [
    'patchmirror_outbox_sequence',
    'Number of the bundle that was put into the outbox last.',
    'gauge',
    [],
    ({ boxes }) => [[boxes?.outbox?.last?.sequence ?? null]],
  ],
  [
    'patchmirror_outbox_failing',
    '1: the outbox could not be filled the last time.',
    'gauge',
    [],
    ({ boxes }) => [[problem(boxes?.outbox)]],
  ],
  [
    'patchmirror_inbox_waiting',
    'Bundles that wait in the inbox.',
    'gauge',
    [],
    ({ boxes }) => [[boxes?.inbox?.waiting.length ?? null]],
  ],
  [
    'patchmirror_inbox_failing',
    '1: the inbox could not be looked into the last time.',
    'gauge',
    [],
    ({ boxes }) => [[problem(boxes?.inbox)]],
  ],
  [
    'patchmirror_inbox_bundles_total',
    'Bundles that came into the inbox since the start, by what became of them.',
    'counter',
    ['outcome'],
    settledBundles,
  ],

  [
    'patchmirror_edge_failing',
    '1: a shared cache could not be purged the last time.',
    'gauge',
    ['target'],
    ({ edge = [] }) => edge.map(({ id, state }) => [flag(state === 'failing'), String(id)]),
  ],
  [
    'patchmirror_edge_purges_total',
    'Purges of a shared cache since the start, by outcome.',
    'counter',
    ['target', 'outcome'],
    ({ edge = [] }) =>
      edge.flatMap(({ id, purged, failures }): Sample[] => [
        [purged, String(id), 'ok'],
        [failures, String(id), 'failed'],
      ]),
  ],

  [
    'patchmirror_images_registry',
    'Images of the catalog, by whether images.registry has them.',
    'gauge',
    ['state'],
    ({ registry }) =>
      registry === undefined || !isRegistryAsked(registry)
        ? []
        : (['there', 'missing', 'unknown'] as const).map((state) => [registry[state], state]),
  ],
  [
    'patchmirror_images_registry_timestamp_seconds',
    'When images.registry last answered for all images.',
    'gauge',
    [],
    ({ registry }) => [[seconds(registry?.checkedAt ?? null)]],
  ],

  [
    'patchmirror_certificate_expiry_timestamp_seconds',
    'When a certificate of the mirror expires.',
    'gauge',
    ['certificate'],
    ({ certificates }) => certificates.map(({ name, expiresAt }) => [expiresAt / 1000, name]),
  ],

  [
    'patchmirror_ready',
    '1: /-/ready answers 200. 0: it answers 503 with the reason.',
    'gauge',
    [],
    ({ ready }) => [[flag(ready)]],
  ],
  [
    'patchmirror_problems',
    'What is wrong, one for each cause, however much fails for it.',
    'gauge',
    ['code', 'level'],
    ({ problems }) =>
      [...Map.groupBy(problems, ({ code, level }) => `${code} ${level}`)].map(([of, ones]): Sample => [
        ones.length,
        ...of.split(' '),
      ]),
  ],
  [
    'patchmirror_storage_state',
    'State of the data folder: 1 for the one it is in.',
    'gauge',
    ['state'],
    ({ storage }) => ofStates(STORAGE_STATES, storage.state),
  ],
  [
    'patchmirror_storage_free_bytes',
    'Free on the disk of the data folder.',
    'gauge',
    [],
    ({ storage }) => [[storage.freeBytes]],
  ],
  [
    'patchmirror_storage_data_bytes',
    'Size of all files in the data folder: databases, archives, views, copies.',
    'gauge',
    [],
    ({ dataBytes }) => [[dataBytes]],
  ],

  ...FLEET_METRICS,
]
