"""The people who may use the console, and their roles."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from subscriptions.admin.recorded import RecordedAdmin

# Django's own admin module registers both when it is imported.
admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(RecordedAdmin, DjangoUserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_active", "is_staff", "is_superuser", "last_login"]
    list_filter = ["is_active", "groups"]


@admin.register(Group)
class GroupAdmin(RecordedAdmin, DjangoGroupAdmin):
    search_fields = ["name"]
