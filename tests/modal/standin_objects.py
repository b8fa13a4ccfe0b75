"""Requests about objects: images, mounts, secrets, volumes, dicts and blobs."""

from __future__ import annotations

import hashlib
import platform
import re
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from modal_proto import api_pb2 as api
from standin_state import Image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from standin_state import Cloud, Container

Result = api.GenericResult
BASE = re.compile(r"FROM python:(\d+(?:\.\d+)+)")
MAY_CREATE = frozenset({api.OBJECT_CREATION_TYPE_CREATE_IF_MISSING, api.OBJECT_CREATION_TYPE_EPHEMERAL})


def named(there: bool, request: Any, what: str) -> None:  # noqa: FBT001
    """Raises what is said of an object that is not there and was not to be made."""
    if not there and request.object_creation_type not in MAY_CREATE:
        raise GRPCError(Status.NOT_FOUND, f"{what} {request.deployment_name!r} not found")


class Objects:
    cloud: Cloud
    container: Container | None

    async def image_get_or_create(self, request: Any) -> api.ImageGetOrCreateResponse:
        recipe = request.image.SerializeToString(deterministic=True)
        failures = self.cloud.faults.image_failures
        if failures:
            return self._failed_image(failures.pop(0))
        if recipe not in self.cloud.images:
            self._build(recipe, request.image)
        image = self.cloud.images[recipe]
        about = api.ImageMetadata(
            image_builder_version=request.builder_version,
            python_version_info=f"Python {image.python or platform.python_version()}",
        )
        done = Result(status=Result.GENERIC_STATUS_SUCCESS)
        return api.ImageGetOrCreateResponse(image_id=image.id, result=done, metadata=about)

    def _failed_image(self, why: str) -> api.ImageGetOrCreateResponse:
        image_id = self.cloud.new_id("im")
        self.cloud.note("image_failed", image=image_id, why=why)
        failed = Result(status=Result.GENERIC_STATUS_FAILURE, exception=why)
        return api.ImageGetOrCreateResponse(image_id=image_id, result=failed)

    def _build(self, recipe: bytes, asked: api.Image) -> None:
        """At once: nothing is installed, and a container finds what the stand-in's environment has."""
        commands = list(asked.dockerfile_commands)
        stated = [found[1] for found in map(BASE.match, commands) if found]
        bases = [self.cloud.image(each.image_id) for each in asked.base_images]
        stated += [base.python for base in bases if base]
        image = Image(self.cloud.new_id("im"), commands, stated[0] if stated else "")
        self.cloud.images[recipe] = image
        about = [each.image_id for each in asked.base_images]
        self.cloud.note("image", image=image.id, recipe=commands, bases=about, python=image.python)

    async def image_from_id(self, request: Any) -> api.ImageFromIdResponse:
        if self.cloud.image(request.image_id) is None:
            raise GRPCError(Status.NOT_FOUND, f"No image {request.image_id!r}")
        return api.ImageFromIdResponse(image_id=request.image_id)

    async def mount_get_or_create(self, request: Any) -> api.MountGetOrCreateResponse:
        mount_id = self.cloud.new_id("mo")
        files = self.cloud.mounts[mount_id] = {each.filename: each.sha256_hex for each in request.files}
        digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
        self.cloud.note("mount", mount=mount_id, files=sorted(files))
        about = api.MountHandleMetadata(content_checksum_sha256_hex=digest)
        return api.MountGetOrCreateResponse(mount_id=mount_id, handle_metadata=about)

    async def mount_put_file(self, request: Any) -> api.MountPutFileResponse:
        blobs = self.cloud.blobs
        if request.WhichOneof("data_oneof"):
            blobs[request.sha256_hex] = blobs[request.data_blob_id] if request.data_blob_id else request.data
        return api.MountPutFileResponse(exists=request.sha256_hex in blobs)

    async def mount_batched_check_existence(self, request: Any) -> api.MountBatchedCheckExistenceResponse:
        missing = [each for each in request.sha256_hex_hashes if each not in self.cloud.blobs]
        return api.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    async def secret_get_or_create(self, request: Any) -> api.SecretGetOrCreateResponse:
        secrets, name = self.cloud.secrets, request.deployment_name
        secret_id = self.cloud.new_id("st")
        if name and not request.env_dict and name not in secrets:
            raise GRPCError(Status.NOT_FOUND, f"Secret {name!r} not found")
        if request.env_dict or not name:
            secrets[name or secret_id] = dict(request.env_dict)
        secrets[secret_id] = secrets[name or secret_id]
        absent = sorted(set(request.required_keys) - set(secrets[secret_id]))
        if absent:
            raise GRPCError(Status.NOT_FOUND, f"Secret {name!r} lacks {', '.join(absent)}")
        self.cloud.note("secret", secret=secret_id, name=name, names=sorted(secrets[secret_id]))
        about = api.SecretMetadata(name=name, keys=sorted(secrets[secret_id]))
        return api.SecretGetOrCreateResponse(secret_id=secret_id, metadata=about)

    async def volume_get_or_create(self, request: Any) -> api.VolumeGetOrCreateResponse:
        """Known by name, and never mounted."""
        named(request.deployment_name in self.cloud.volumes, request, "Volume")
        volume_id = self.cloud.new_id("vo")
        volume_id = self.cloud.volumes.setdefault(request.deployment_name or volume_id, volume_id)
        self.cloud.note("volume", volume=volume_id, name=request.deployment_name)
        about = api.VolumeMetadata(version=request.version, name=request.deployment_name)
        return api.VolumeGetOrCreateResponse(volume_id=volume_id, version=request.version, metadata=about)

    async def volume_commit(self, request: Any) -> api.VolumeCommitResponse:
        return api.VolumeCommitResponse()

    async def volume_reload(self, request: Any) -> None:
        return None

    async def blob_create(self, request: Any) -> api.BlobCreateResponse:
        blob_id = self.cloud.new_id("bl")
        urls = api.UploadUrlList(items=[self._blob_url(blob_id)])  # 1.6 wants the plural fields
        return api.BlobCreateResponse(blob_ids=[blob_id], upload_urls=urls)

    async def blob_get(self, request: Any) -> api.BlobGetResponse:
        return api.BlobGetResponse(download_url=self._blob_url(request.blob_id))

    def _blob_url(self, blob_id: str) -> str:
        """Containers have one of their own: the service can be out of a client's reach and not of theirs."""
        return f"{self.cloud.http}/{'inside' if self.container else 'blob'}/{blob_id}"

    def _dict(self, request: Any) -> dict[bytes, bytes]:
        if request.dict_id not in self.cloud.dicts:
            raise GRPCError(Status.NOT_FOUND, f"No dict {request.dict_id!r}")
        return self.cloud.dicts[request.dict_id]

    async def dict_get_or_create(self, request: Any) -> api.DictGetOrCreateResponse:
        name = request.deployment_name
        dict_id = f"di-{name}" if name else self.cloud.new_id("di")
        named(dict_id in self.cloud.dicts, request, "Dict")
        self.cloud.dicts.setdefault(dict_id, {each.key: each.value for each in request.data})
        return api.DictGetOrCreateResponse(dict_id=dict_id, metadata=api.DictMetadata(name=name))

    async def dict_get_by_id(self, request: Any) -> api.DictGetByIdResponse:
        self._dict(request)
        return api.DictGetByIdResponse(dict_id=request.dict_id)

    async def dict_heartbeat(self, request: Any) -> None:
        self._dict(request)

    async def dict_update(self, request: Any) -> api.DictUpdateResponse:
        here = self._dict(request)
        new = [each for each in request.updates if not (request.if_not_exists and each.key in here)]
        here.update({each.key: each.value for each in new})
        return api.DictUpdateResponse(created=bool(new))

    async def dict_get(self, request: Any) -> api.DictGetResponse:
        here = self._dict(request)
        return api.DictGetResponse(found=request.key in here, value=here.get(request.key))

    async def dict_pop(self, request: Any) -> api.DictPopResponse:
        here = self._dict(request)
        return api.DictPopResponse(found=request.key in here, value=here.pop(request.key, None))

    async def dict_contains(self, request: Any) -> api.DictContainsResponse:
        return api.DictContainsResponse(found=request.key in self._dict(request))

    async def dict_len(self, request: Any) -> api.DictLenResponse:
        return api.DictLenResponse(len=len(self._dict(request)))

    async def dict_contents(self, request: Any) -> AsyncIterator[api.DictEntry]:
        for key, value in list(self._dict(request).items()):
            yield api.DictEntry(key=key, value=value)

    async def dict_clear(self, request: Any) -> None:
        self._dict(request).clear()

    async def dict_delete(self, request: Any) -> None:
        self._dict(request)
        del self.cloud.dicts[request.dict_id]
