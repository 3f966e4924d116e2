import { acquireLock } from '../../src/store/database/lock.ts'
import { openWrites } from '../../src/store/writes.ts'

/** What the tests of several processes run in another one: `child.ts <what> <data folder>`. */
const [, , what, dir = ''] = process.argv

if (what === 'lock') {
  const lock = acquireLock(dir, 'sync')
  process.stdout.write('held\n')
  process.stdin.once('end', () => lock.release()).resume() // until then somebody holds it: what nobody holds is collected
} else if (what === 'open') {
  openWrites(dir).close()
  process.stdout.write('opened\n')
} else if (what === 'unfinished') {
  const store = openWrites(dir)
  store.runs.startRun({ source: 'osv', kind: 'sync', trigger: 'schedule', startedAt: 1 })
  void store.transaction(() => {
    store.feeds.replaceUpstreamState('/lost', { etag: '"lost"', lastModified: null, body: null })
    process.stdout.write('writing\n')
    return new Promise<{ commit: boolean }>(() => process.stdin.resume())
  })
}
