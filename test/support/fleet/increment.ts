/* A process that adds to a number in a folder store until it succeeded as often as asked. */
import { createFolderStore } from '../../../src/features/fleet/objects/folder-store.ts'
import { readObject } from '../../../src/features/fleet/objects/object-store.ts'

const [, , url = '', times = '0'] = process.argv
const store = createFolderStore(url)
for (let done = 0; done < Number(times);) {
  const found = await readObject(store, 'number', 100)
  if (found === null) throw new Error('there is no number')
  const next = Buffer.from(String(Number(found.bytes.toString()) + 1))
  if ((await store.putIfMatch('number', next, found.info.etag)) === null) continue
  done++
  process.stdout.write('.')
}
store.close()
