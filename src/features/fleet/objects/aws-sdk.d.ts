/**
 * The part of the SDK that the program uses. The package is optional, so its own types may be missing where the program is
 * compiled; these have the same names, and leave out what is not used.
 */
declare module '@aws-sdk/client-s3' {
  import type { Agent as HttpAgent } from 'node:http'
  import type { Agent as HttpsAgent } from 'node:https'
  import type { Readable } from 'node:stream'

  interface ClientOptions {
    readonly region: string
    readonly endpoint?: string
    readonly forcePathStyle: boolean
    readonly requestChecksumCalculation?: 'WHEN_REQUIRED'
    readonly responseChecksumValidation?: 'WHEN_REQUIRED'
    readonly maxAttempts: number
    readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string }
    readonly requestHandler?: {
      readonly connectionTimeout: number
      readonly httpAgent: HttpAgent
      readonly httpsAgent: HttpsAgent
    }
  }

  type Handler = (args: {
    readonly request: unknown
  }) => Promise<{ readonly response: unknown; readonly output: object }>

  interface MiddlewareStack {
    add(
      middleware: (next: Handler) => Handler,
      place: {
        readonly step: 'build' | 'deserialize'
        readonly priority?: 'high'
        readonly name: string
      },
    ): void
  }

  class Command<Input, Output> {
    constructor(input: Input)
    readonly middlewareStack: MiddlewareStack
    /** Only in the types: what `send` resolves to. */
    readonly output: Output
  }

  export class S3Client {
    constructor(options: ClientOptions)
    readonly middlewareStack: MiddlewareStack
    send<Input, Output>(
      command: Command<Input, Output>,
      options?: { readonly abortSignal?: AbortSignal },
    ): Promise<Output>
    destroy(): void
  }

  interface ObjectName {
    readonly Bucket: string
    readonly Key: string
  }
  interface UploadOfObject extends ObjectName {
    readonly UploadId: string
  }
  interface WriteCondition {
    readonly IfNoneMatch?: '*'
    readonly IfMatch?: string
  }
  interface Described {
    readonly ETag?: string
    readonly LastModified?: Date
    readonly ContentLength?: number
  }
  interface Tagged {
    readonly ETag?: string
  }
  interface PutInput extends ObjectName, WriteCondition {
    readonly Body: Buffer | Readable | string
    readonly ContentLength?: number
  }
  interface CompleteInput extends UploadOfObject, WriteCondition {
    readonly MultipartUpload: {
      readonly Parts: { readonly ETag: string; readonly PartNumber: number }[]
    }
  }
  interface ListInput {
    readonly Bucket: string
    readonly Prefix: string
    readonly ContinuationToken?: string
  }
  interface ListOutput {
    readonly Contents?: readonly (Tagged & {
      readonly Key?: string
      readonly Size?: number
      readonly LastModified?: Date
    })[]
    readonly NextContinuationToken?: string
    readonly IsTruncated?: boolean
  }

  export class CreateBucketCommand extends Command<{ readonly Bucket: string }, object> {}
  export class GetObjectCommand extends Command<
    ObjectName & { readonly Range?: string },
    Described & { readonly Body?: Readable; readonly ContentRange?: string }
  > {}
  export class HeadObjectCommand extends Command<ObjectName, Described> {}
  export class PutObjectCommand extends Command<PutInput, Tagged> {}
  export class DeleteObjectCommand extends Command<ObjectName, object> {}
  export class ListObjectsV2Command extends Command<ListInput, ListOutput> {}
  export class CreateMultipartUploadCommand extends Command<ObjectName, { readonly UploadId?: string }> {}
  export class UploadPartCommand extends Command<
    UploadOfObject & { readonly PartNumber: number; readonly Body: Buffer },
    Tagged
  > {}
  export class CompleteMultipartUploadCommand extends Command<CompleteInput, Tagged> {}
  export class AbortMultipartUploadCommand extends Command<UploadOfObject, object> {}
}
