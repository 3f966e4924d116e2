import { applyBundle } from '../../../src/features/bundles/import/apply.ts'
import { type Inbox, type ImportResult, createInboxImporter } from '../../../src/features/bundles/boxes/inbox.ts'
import type { PublicKey } from '../../../src/features/bundles/format/keys.ts'
import { type Below, signer } from './air-gap.ts'

/** An inbox whose looks the test makes. */
export interface Watched {
  inbox: Inbox
  settled: ImportResult[]
  troubles: string[]
  /** Twice: what has not moved between two looks has arrived. */
  readonly look: () => Promise<void>
}

interface WatchOptions {
  readonly now?: () => number
  /** Brings files into the folder before each look. */
  readonly fetch?: () => Promise<void>
  readonly keys?: readonly PublicKey[]
}

/** Watches a folder for a mirror below the gap. */
export function watch(
  box: string,
  { config, store }: Pick<Below, 'config' | 'store'>,
  more: WatchOptions = {},
): Watched {
  const { now = Date.now, fetch, keys = [signer()] } = more
  const settled: ImportResult[] = []
  const troubles: string[] = []
  const inbox = createInboxImporter({
    folder: box,
    dataDir: config.data.dir,
    ...(fetch === undefined ? {} : { fetch }),
    now,
    trust: { keys, revoked: new Set(), now },
    apply: (bundle, file) => applyBundle({ config, store, bundle, file, trigger: 'inbox', now }),
    onSettled: (one) => settled.push(one),
    onTrouble: (one) => troubles.push(one),
  })
  const look = async (): Promise<void> => {
    await inbox.look()
    await inbox.look()
  }
  return { inbox, settled, troubles, look }
}
