"""Calls the suite with Python's grpcio, knowing nothing but the address: reflection tells the rest."""

import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

address = sys.argv[1]
with grpc.insecure_channel(address) as channel:
    database = ProtoReflectionDescriptorDatabase(channel)
    services = set(database.get_services())
    wanted = {f"bookstore.{name}.v1.{name.title()}Service" for name in ("catalog", "inventory", "ordering")}
    assert wanted | {"grpc.health.v1.Health"} <= services, services

    catalog = DescriptorPool(database).FindServiceByName("bookstore.catalog.v1.CatalogService")

    def method(name, kind):
        found = catalog.FindMethodByName(name)
        request, reply = GetMessageClass(found.input_type), GetMessageClass(found.output_type)
        path = f"/{catalog.full_name}/{name}"
        return request, getattr(channel, kind)(path, request.SerializeToString, reply.FromString)

    request, call = method("GetBookDetail", "unary_unary")
    detail = call(request(book_id=1, review_count=2), timeout=5)
    assert detail.book.id == 1 and detail.author.name and len(detail.reviews) == 2, detail

    request, call = method("StreamBooks", "unary_stream")
    books = [reply.book.id for reply in call(request(limit=5), timeout=5)]
    assert books == [1, 2, 3, 4, 5], books

    request, call = method("GetBook", "unary_unary")
    try:
        call(request(book_id=999), timeout=5)
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND, error
        assert b"BOOK_NOT_FOUND" in dict(error.trailing_metadata())["grpc-status-details-bin"]
    else:
        raise AssertionError("book 999 was found")

print("grpcio: reflection, a unary call, a stream and a refusal are right")
