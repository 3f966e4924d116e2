import type { ImportResult } from './boxes/inbox.ts'
import { startBoxesThread } from './boxes/thread.ts'
import type { Parts, RunningPart } from '../../daemon/feature.ts'

/** Fills the outbox whenever more is served, and empties the inbox, where the settings name them. */
export function startBundles({ config, version, offline, log, signals }: Parts): RunningPart {
  const { bundle, catalog, data, upstream, network } = config
  if (bundle.outbox === null && bundle.inbox === null) return {}
  const thread = startBoxesThread({
    config: { bundle, catalog, data, upstream, network },
    version,
    offline,
    onSettled: (settled) => logResult(log, settled),
    onShipped: ({ file, sequence, kind, bytes, partial }) =>
      log.info({ bundle: sequence, kind, bytes, partial }, `outbox: ${file} is whole and verified`),
    onFault: (message) => log.warn({}, `bundles: ${message}`),
  })
  signals.on('served', () => thread.published())
  return { shown: { boxes: () => thread.status() }, close: () => thread.close() }
}

function logResult(log: Parts['log'], { file, outcome, detail }: ImportResult): void {
  const fields = { file, outcome }
  if (outcome === 'refused') log.warn(fields, `inbox: ${file} is refused: ${detail}`)
  else log.info(fields, `inbox: ${file} is ${outcome}: ${detail}`)
}
