import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sha256Hex } from '../../src/base/digest.ts'

/** A registry on loopback with one image, under any repository. */
export interface ImageRegistry {
  readonly port: number
  /** `sha256:…` of its manifest. */
  readonly digest: string
  readonly close: () => Promise<void>
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar'

/** Serves an image of one layer with these files, as OCI's distribution API has it. */
export async function serveImage(files: Readonly<Record<string, string>>): Promise<ImageRegistry> {
  const layer = tarOf(files)
  const config = json({
    architecture: 'amd64',
    os: 'linux',
    config: {},
    history: [],
    rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
  })
  const manifest = json({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: { mediaType: CONFIG, digest: digestOf(config), size: config.length },
    layers: [{ mediaType: LAYER, digest: digestOf(layer), size: layer.length }],
  })
  const digest = digestOf(manifest)
  const blobs = new Map([layer, config].map((blob) => [digestOf(blob), blob]))
  const server = createServer((request, response) => {
    const [, kind, name = ''] = /^\/v2\/.+\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? '') ?? []
    const body = kind === 'manifests' ? manifest : (blobs.get(name) ?? json({}))
    const type = kind === 'manifests' ? MANIFEST : 'application/octet-stream'
    const about = { 'Content-Type': type, 'Content-Length': String(body.length) }
    response.writeHead(200, { ...about, 'Docker-Content-Digest': digestOf(body) })
    response.end(request.method === 'HEAD' ? undefined : body)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((done) => {
      server.closeAllConnections()
      server.close(() => done())
    })
  return { port, digest, close }
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function digestOf(bytes: Buffer): string {
  return `sha256:${sha256Hex(bytes)}`
}

/** A tar archive (ustar) of files. */
function tarOf(files: Readonly<Record<string, string>>): Buffer {
  const blocks = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text)
    return [headerOf(name, content.length), content, Buffer.alloc(-content.length & 511)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(512)
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`
  header.write(name, 0)
  header.write(octal(0o644, 7) + octal(0, 7) + octal(0, 7) + octal(size, 11) + octal(0, 11), 100)
  header.write('        0', 148) // the sum is made with blanks in its place
  header.write('ustar\u000000', 257)
  header.write(
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    ),
    148,
  )
  return header
}
