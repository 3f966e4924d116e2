/** What a made-up event announces. */
export interface SampleEvent {
  readonly type: string
  readonly repository: string
  readonly tag: string
  readonly digest: string | null
  readonly arch: string
}

/** The body of an event as the service sends it: a CloudEvent in JSON (wire facts, webhook deliveries). */
export function sampleEvent(id: string, now: number, event: SampleEvent): Buffer {
  const { type, repository, tag, digest, arch } = event
  const named = { image_repo: repository, image_tag: tag, arch }
  return Buffer.from(
    JSON.stringify({
      specversion: '1.0',
      id,
      source: 'https://patchmirror.invalid/webhooks/send',
      type,
      subject: `patchmirror.invalid/${repository}:${tag}`,
      time: `${new Date(now).toISOString().slice(0, 19)}Z`,
      data: digest === null ? named : { ...named, image_digest: digest },
    }),
  )
}
