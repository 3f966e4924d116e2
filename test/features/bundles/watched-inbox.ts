import { applyBundle } from '../../../src/features/bundles/import/apply.ts'
import { type Inbox, type ImportResult, createInboxImporter } from '../../../src/features/bundles/boxes/inbox.ts'
import { writeReceipt } from '../../../src/features/bundles/boxes/receipts.ts'
import { type Below, signer } from './air-gap.ts'

/** An inbox whose looks the test makes. */
export interface Watched {
  inbox: Inbox
  settled: ImportResult[]
  troubles: string[]
  /** Twice: what has not moved between two looks has arrived. */
  readonly look: () => Promise<void>
}

type Deps = Parameters<typeof createInboxImporter>[0]

interface WatchOptions extends Pick<Deps, 'fetch' | 'onArriving' | 'elapsed'> {
  readonly now?: () => number
  /** Trusted beside that of these tests. */
  readonly keys?: Deps['trust']['keys']
  /** Where receipts are written. */
  readonly receipts?: string
}

/** Watches a folder for a mirror below the gap; `fetch` brings files into it. */
export function watch(
  box: string,
  { config, store }: Pick<Below, 'config' | 'store'>,
  { now = Date.now, keys = [], receipts, ...more }: WatchOptions = {},
): Watched {
  const settled: ImportResult[] = []
  const troubles: string[] = []
  const inbox = createInboxImporter({
    folder: box,
    dataDir: config.data.dir,
    ...more,
    now,
    trust: { keys: [signer(), ...keys], revoked: new Set(), now },
    async apply(bundle, file) {
      const report = await applyBundle({ config, store, bundle, file, trigger: 'inbox', now })
      if (receipts !== undefined) writeReceipt(receipts, store, report)
      return report
    },
    ...(receipts !== undefined && { onMissingBase: () => void writeReceipt(receipts, store, null) }),
    onSettled: (one) => settled.push(one),
    onTrouble: (one) => troubles.push(one),
  })
  const look = async (): Promise<void> => {
    await inbox.look()
    await inbox.look()
  }
  return { inbox, settled, troubles, look }
}
