import type { ServerOptions } from './api/server.ts'
import type { Settled } from './bundle/inbox.ts'
import { type BoxesThread, startBoxesThread } from './bundle/thread.ts'
import type { Config } from './config/schema.ts'
import type { Logger } from './log.ts'

/** What crosses the gap by itself is wired from. */
export interface CrossingOptions {
  readonly config: Config
  readonly version: string
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Told as well how far the change log is served. */
  readonly onServed?: NonNullable<ServerOptions['onServed']>
}

/** Inbox and outbox, and what the server shows of them. */
export interface Crossing {
  /** For the server's options. */
  readonly shown: Required<Pick<ServerOptions, 'onServed'>> & Pick<ServerOptions, 'boxes'>
  close(): Promise<void>
}

/** Fills the outbox whenever more is served, and empties the inbox, where the settings name them. */
export function startCrossing({ config, version, log, onServed }: CrossingOptions): Crossing {
  const { bundle, data } = config
  const wanted = bundle.outbox !== null || bundle.inbox !== null
  const thread: BoxesThread | null = wanted
    ? startBoxesThread({
        config: { bundle, data },
        version,
        onSettled: (settled) => tell(log, settled),
        onShipped: ({ file, sequence, kind, bytes, partial }) =>
          log.info(
            { bundle: sequence, kind, bytes, partial },
            `outbox: ${file} is whole and verified`,
          ),
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

function tell(log: CrossingOptions['log'], { file, outcome, detail }: Settled): void {
  const fields = { file, outcome }
  if (outcome === 'refused') log.warn(fields, `inbox: ${file} is refused: ${detail}`)
  else log.info(fields, `inbox: ${file} is ${outcome}: ${detail}`)
}
