import type { ServerOptions } from '../api/server.ts'
import type { ImportResult } from '../bundle/boxes/inbox.ts'
import { type BoxesThread, startBoxesThread } from '../bundle/boxes/thread.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../core/log.ts'

/** What crosses the gap by itself is wired from. */
interface BundlesOptions {
  readonly config: Config
  readonly version: string
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Also called with the last served entry of the change log. */
  readonly onServed?: NonNullable<ServerOptions['onServed']>
}

/** Inbox and outbox, and what the server shows of them. */
export interface RunningBundles {
  /** For the server's options. */
  readonly shown: Required<Pick<ServerOptions, 'onServed'>> & Pick<ServerOptions, 'boxes'>
  close(): Promise<void>
}

/** Fills the outbox whenever more is served, and empties the inbox, where the settings name them. */
export function startBundles({ config, version, log, onServed }: BundlesOptions): RunningBundles {
  const { bundle, data, history } = config
  const wanted = bundle.outbox !== null || bundle.inbox !== null
  const thread: BoxesThread | null = wanted
    ? startBoxesThread({
        config: { bundle, data, history },
        version,
        onSettled: (settled) => logResult(log, settled),
        onShipped: ({ file, sequence, kind, bytes, partial }) =>
          log.info({ bundle: sequence, kind, bytes, partial }, `outbox: ${file} is whole and verified`),
        onFault: (message) => log.warn({}, `bundles: ${message}`),
      })
    : null
  return {
    shown: {
      onServed(upTo) {
        onServed?.(upTo)
        thread?.published()
      },
      ...(thread === null ? {} : { boxes: () => thread.status() }),
    },
    close: async () => thread?.close(),
  }
}

function logResult(log: BundlesOptions['log'], { file, outcome, detail }: ImportResult): void {
  const fields = { file, outcome }
  if (outcome === 'refused') log.warn(fields, `inbox: ${file} is refused: ${detail}`)
  else log.info(fields, `inbox: ${file} is ${outcome}: ${detail}`)
}
