/**
 * Serves a generated feed from its files, streamed: `serve-child.ts DIR sorted|shuffled`. It has no single records and no
 * ranges: a first sync needs neither.
 */
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

const [dir = '', order = ''] = process.argv.slice(2)
const FILES: Readonly<Record<string, { file: string; headers: Record<string, string> }>> = {
  '/external/osv/all.json': {
    file: join(dir, 'all.json.gz'),
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
  },
  '/external/osv/all.zip': {
    file: join(dir, `${order}.zip`),
    headers: { 'content-type': 'application/zip' },
  },
}

const server = createServer(({ url = '', method }, answer) => {
  const found = FILES[url]
  if (found === undefined) {
    answer.writeHead(404).end()
    return
  }
  const { size, mtime } = statSync(found.file)
  answer.writeHead(200, {
    ...found.headers,
    'content-length': size,
    etag: `"${order}-${size}"`,
    'last-modified': mtime.toUTCString(),
  })
  if (method === 'HEAD') answer.end()
  else createReadStream(found.file).pipe(answer)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  process.send?.({ url: `http://127.0.0.1:${port}` })
})
process.on('disconnect', () => process.exit(0))
