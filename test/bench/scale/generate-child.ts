/**
 * Writes a feed of many records into a folder: `generate-child.ts DIR COUNT`. In memory are only ids, stamps and places;
 * the records stream through. `shuffled.zip` has the members in random order, `sorted.zip` the same in the order of their
 * ids, `all.json.gz` is their index.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, createGzip } from 'node:zlib'
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { generateRecord } from '../../sandbox/feed/generate.ts'
import { createRandom } from '../../sandbox/feed/random.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import { createZipWriter } from '../../../src/archive/zip/writer.ts'

const SEED = 7

/** Members of the shuffled archive, by the order in which they were written. */
interface Places {
  readonly ids: string[]
  readonly modified: string[]
  readonly crc: Uint32Array
  readonly size: Uint32Array
  readonly packed: Uint32Array
  readonly offset: Float64Array
}

/** The numbers below `count` in random order. */
function shuffled(count: number): Uint32Array {
  const random = createRandom(SEED)
  const order = Uint32Array.from({ length: count }, (_, i) => i)
  for (let at = count - 1; at > 0; at--) {
    const other = random.int(at + 1)
    ;[order[at], order[other]] = [order[other] ?? 0, order[at] ?? 0]
  }
  return order
}

function writeShuffled(file: string, count: number): Places {
  const numbers = (): Uint32Array => new Uint32Array(count)
  const places: Places = {
    ids: [],
    modified: [],
    offset: new Float64Array(count),
    crc: numbers(),
    size: numbers(),
    packed: numbers(),
  }
  const to = openSync(file, 'w')
  const zip = createZipWriter((chunk) => writeSync(to, chunk))
  for (const [at, number] of shuffled(count).entries()) {
    const { id, modified, bytes } = generateRecord({ seed: SEED }, number)
    const deflated = deflate(bytes)
    const member = { name: `${id}.json`, crc32: crc32(bytes), size: bytes.length, deflated }
    places.offset[at] = zip.add(member)
    places.ids.push(id)
    places.modified.push(modified)
    places.crc[at] = member.crc32
    places.size[at] = member.size
    places.packed[at] = deflated.length
  }
  zip.finish()
  closeSync(to)
  return places
}

function writeSorted(source: string, file: string, places: Places, order: readonly number[]): void {
  const from = openSync(source, 'r')
  const to = openSync(file, 'w')
  const zip = createZipWriter((chunk) => writeSync(to, chunk))
  for (const at of order) {
    const deflated = Buffer.allocUnsafe(places.packed[at] ?? 0)
    readSync(from, deflated, 0, deflated.length, places.offset[at] ?? 0)
    const size = places.size[at] ?? 0
    const crc = places.crc[at] ?? 0
    zip.add({ name: `${places.ids[at] ?? ''}.json`, crc32: crc, size, deflated })
  }
  zip.finish()
  closeSync(from)
  closeSync(to)
}

const ROWS = 1000

function* indexText({ ids, modified }: Places, order: readonly number[]): Generator<string> {
  for (let at = 0; at < order.length; at += ROWS) {
    const rows = order.slice(at, at + ROWS).map((place) => {
      return JSON.stringify({ id: ids[place], modified: modified[place] })
    })
    yield (at === 0 ? '[' : ',') + rows.join(',')
  }
  yield ']'
}

const [dir = '', text = ''] = process.argv.slice(2)
const places = writeShuffled(join(dir, 'shuffled.zip'), Number(text))
const { ids } = places
const order = ids.map((_, at) => at).sort((a, b) => ((ids[a] ?? '') < (ids[b] ?? '') ? -1 : 1))
writeSorted(join(dir, 'shuffled.zip'), join(dir, 'sorted.zip'), places, order)
await pipeline(Readable.from(indexText(places, order)), createGzip(), createWriteStream(join(dir, 'all.json.gz')))
